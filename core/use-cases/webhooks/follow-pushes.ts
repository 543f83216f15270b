/**
 * Follows the log and tells webhooks of every push, from where it stopped the last time.
 *
 * Must stay true: the checkpoint stands before the oldest push that is not told whole, so that none is lost; pushes of one account are
 * told in the order of the log, and those of others need not wait for them; what is held in memory is bounded.
 */
import { aborted } from '../../kernel/aborted.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, uuid } from '../../kernel/ids.ts';
import { WEBHOOK_PUSHES_AT_ONCE_MAX } from '../../kernel/limits.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { Vault } from '../../ports/vault.ts';
import type { ReadMark } from '../../ports/vault-references.ts';
import { isOutage } from '../../runtime/is-outage.ts';
import { createTurns } from '../../kernel/concurrency-limit.ts';
import { type NotifyContext, notifyOfPush, type Turn } from './notify-webhooks.ts';
import type { Complete } from '../../runtime/read-entity.ts';
import { markOf, standingPosition } from '../read-mark.ts';

export interface FollowPushesContext extends NotifyContext {
  readonly marks: PolicyMarks;
  readonly vault: Pick<Vault, 'holds'>;
  /** Puts back what an event leaves to other streams. */
  readonly complete: Complete;
  /** Pushes older than that are not told any more: their bodies would be removed at once. */
  readonly retentionMs: number;
  /** Resolves after so long, or at once when the signal is aborted. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly onFault: (cause: unknown) => void;
}

const POLICY = 'webhook-notifications';
/** Slices of work at a time. */
const TURNS_AT_ONCE = 4;
const TRIES_MAX = 6;
const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 5_000;
/** The mark is saved so often at most: what is told again after a crash changes nothing, and a save costs every push. */
const SAVE_INTERVAL_MS = 1_000;

/** Runs until the signal, or rejects when the log cannot be followed. Resolves when nothing is under way any more. */
export async function followPushes(context: FollowPushesContext, signal: AbortSignal): Promise<void> {
  const { events, marks } = context;
  const after = await startOf(context);
  const progress = new Progress({
    save: (mark) => marks.save(POLICY, mark),
    pause: () => context.pause(SAVE_INTERVAL_MS, signal),
    onFault: context.onFault,
    signal,
  });
  const turn = createTurns(TURNS_AT_ONCE);
  const lanes = new Map<AccountId, Promise<void>>();

  function tellInTurn(event: RecordedEvent): void {
    const { accountId } = event;
    const done = progress.begin(event);
    if (accountId === null) {
      done();
      return;
    }
    const lane = (lanes.get(accountId) ?? Promise.resolve())
      .then(() => tellUntilDone(context, event, turn, signal))
      .then((told) => {
        if (told) done();
        if (lanes.get(accountId) === lane) lanes.delete(accountId);
      });
    lanes.set(accountId, lane);
  }

  const subscription = events.subscribe({
    after,
    categories: ['account', 'repository'],
    onEvents: async (batch) => {
      for (const event of batch) {
        await progress.room(signal);
        if (signal.aborted) return;
        if (concerns(event)) tellInTurn(event);
        else progress.begin(event)();
      }
    },
  });
  try {
    await Promise.race([aborted(signal), subscription.closed]);
  } finally {
    await Promise.allSettled([subscription.close()]);
    await Promise.all(lanes.values());
    await progress.saved();
  }
}

function concerns({ stream, type }: RecordedEvent): boolean {
  return categoryOf(stream) === 'repository' ? type === 'RefsUpdated' : type === 'AccountErased';
}

/** Whether it was done; false only once the signal is aborted. */
async function tellUntilDone(
  context: FollowPushesContext,
  event: RecordedEvent,
  turn: Turn,
  signal: AbortSignal,
): Promise<boolean> {
  let tries = 0;
  let withoutObjects = false;
  let pauseMs = PAUSE_FIRST_MS;
  while (!signal.aborted) {
    try {
      await followUp(context, event, turn, withoutObjects);
      return true;
    } catch (error) {
      context.onFault(error);
      if (!isOutage(error)) tries += 1;
      // Objects that are out of reach, or that nobody can read: a hostile one is no reason to tell nothing.
      if (tries === TRIES_MAX && !withoutObjects) {
        withoutObjects = true;
        tries = 0;
      }
      if (tries === TRIES_MAX) {
        const { stream, revision } = event;
        context.log.error({ err: error, stream, revision }, 'Webhooks could not be told of an event: it is left out');
        return true;
      }
    }
    await context.pause(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, PAUSE_LAST_MS);
  }
  return false;
}

async function followUp(
  context: FollowPushesContext,
  event: RecordedEvent,
  turn: Turn,
  withoutObjects: boolean,
): Promise<void> {
  if (event.type === 'AccountErased') {
    await context.deliveries.forgetAccount(uuid<AccountId>(entityIdOf(event.stream)));
    return;
  }
  if (event.occurredAt < plusMs(context.clock.now(), -context.retentionMs)) return;
  await notifyOfPush(context, await context.complete(event), turn, { withoutObjects });
}

/** Where it stopped the last time, if this is the log it read. */
async function startOf(context: FollowPushesContext): Promise<LogPosition> {
  const { events, marks, log } = context;
  const mark = await marks.read(POLICY);
  if (mark === null) return firstStartOf(context);
  const position = await standingPosition(events, mark);
  if (position !== null) return position;
  const { stream, revision } = mark;
  log.warn({ stream, revision }, 'The log is another than the one that webhooks were told of: it is followed anew');
  return firstStartOf(context);
}

/**
 * The log's start, since what was told stays told; its end while no webhook exists and no body is kept: a log of a million
 * pushes has nothing to tell then. A webhook's secret stands in the vault before the event that names it, so the end,
 * looked up first, lies before every webhook that is not seen here. No mark is saved of it: whatever comes next saves one.
 */
async function firstStartOf({ events, vault, deliveries }: FollowPushesContext): Promise<LogPosition> {
  const head = await events.head();
  if (await vault.holds('webhook-secret')) return LOG_START;
  return (await deliveries.isEmpty()) ? head : LOG_START;
}

interface Begun {
  readonly mark: ReadMark;
  done: boolean;
}

interface ProgressOptions {
  readonly save: (mark: ReadMark) => Promise<void>;
  /** Between two saves. */
  readonly pause: () => Promise<void>;
  readonly onFault: (cause: unknown) => void;
  /** Once aborted, a save that fails is not tried again. */
  readonly signal: AbortSignal;
}

/** Events under way in their order, and the last before which all are done. */
class Progress {
  readonly #options: ProgressOptions;
  #begun: Begun[] = [];
  #reached: ReadMark | null = null;
  #saving: Promise<void> | null = null;
  #wake: (() => void)[] = [];

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  /** The function returned says that the event is done. */
  begin(event: RecordedEvent): () => void {
    const begun: Begun = { mark: markOf(event), done: false };
    this.#begun.push(begun);
    return () => {
      begun.done = true;
      this.#advance();
    };
  }

  /** Resolves when another event may begin. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#begun.length >= WEBHOOK_PUSHES_AT_ONCE_MAX && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const goOn = (): void => {
          signal.removeEventListener('abort', goOn);
          resolve();
        };
        this.#wake.push(goOn);
        signal.addEventListener('abort', goOn, { once: true });
      });
    }
  }

  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  #advance(): void {
    const undone = this.#begun.findIndex(({ done }) => !done);
    const count = undone === -1 ? this.#begun.length : undone;
    const last = this.#begun[count - 1];
    if (last === undefined) return;
    this.#begun = this.#begun.slice(count);
    this.#reached = last.mark;
    for (const wake of this.#wake.splice(0)) wake();
    this.#saving ??= this.#saveAll();
  }

  async #saveAll(): Promise<void> {
    const { save, pause, onFault, signal } = this.#options;
    while (this.#reached !== null) {
      const mark = this.#reached;
      this.#reached = null;
      try {
        await save(mark);
      } catch (error) {
        onFault(error);
        // What was reached meanwhile says it too; after an end it is told again, which changes nothing.
        if (!signal.aborted) this.#reached ??= mark;
      }
      await pause();
    }
    this.#saving = null;
  }
}
