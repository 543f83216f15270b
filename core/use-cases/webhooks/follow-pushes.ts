/**
 * Follows the log from where it stopped the last time, and requests the webhook deliveries of every push.
 *
 * Must stay true: the checkpoint is before the oldest push that is not finished, so that no push is lost. The pushes of
 * one account are processed in the order of the log, and those of other accounts need not wait for them. The memory
 * that it takes is bounded.
 */
import { isBeyondBounds } from '../../ports/object-database.ts';
import { untilAborted } from '../../kernel/aborted.ts';
import { backoff } from '../../kernel/backoff.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, uuid } from '../../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS, WEBHOOK_PUSHES_AT_ONCE_MAX } from '../../kernel/limits.ts';
import type { Pause } from '../../ports/clock.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { Vault } from '../../ports/vault.ts';
import { missingOfAppend } from '../../kernel/whole-appends.ts';
import type { ReadMark, RecordPlace } from '../../ports/read-mark.ts';
import { isOutage } from '../../runtime/is-outage.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import { type NotifyContext, notifyOfPush, type Turn } from './notify-webhooks.ts';
import type { Complete } from '../../runtime/read-entity.ts';
import { provenMark, recordPlaceOf } from '../../runtime/read-mark.ts';

export interface FollowPushesContext extends NotifyContext {
  readonly marks: PolicyMarks;
  readonly vault: Pick<Vault, 'holds'>;
  /** Puts back the parts of an event that are on another stream. */
  readonly complete: Complete;
  /**
   * Older pushes are skipped, because the bodies of their deliveries would be removed at once. A push whose deliveries
   * are late, because this was down, is not skipped for a day, however short the retention.
   */
  readonly retentionMs: number;
  readonly pause: Pause;
  readonly onFault: (cause: unknown) => void;
}

/** The checkpoint of this policy: webhooks are notified of every push up to it. */
export const NOTIFICATIONS_POLICY = 'webhook-notifications';
/** The number of slices of work that run at a time. */
const TURNS_AT_ONCE = 4;
const TRIES_MAX = 6;
const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 5_000;
/** The mark is saved at most this often. A save slows every push down, and processing a push again is idempotent. */
const SAVE_INTERVAL_MS = 1_000;

/** Runs until the signal is aborted and all work has stopped. Rejects if the log cannot be followed. */
export async function followPushes(context: FollowPushesContext, signal: AbortSignal): Promise<void> {
  const { events, marks } = context;
  const start = await startOf(context);
  let record = start.record;
  const progress = new Progress({
    save: (mark) => marks.save(NOTIFICATIONS_POLICY, mark),
    pause: () => context.pause(SAVE_INTERVAL_MS, signal),
    onFault: context.onFault,
    signal,
  });
  const turn = createConcurrencyLimit(TURNS_AT_ONCE);
  const queues = new Map<AccountId, Promise<void>>();

  function processInOrder(event: RecordedEvent, mark: ReadMark | null): void {
    const { accountId } = event;
    const done = progress.begin(mark);
    if (accountId === null) {
      done();
      return;
    }
    const queue = (queues.get(accountId) ?? Promise.resolve())
      .then(() => processUntilDone(context, event, turn, signal))
      .then((isDone) => {
        if (isDone) done();
        if (queues.get(accountId) === queue) queues.delete(accountId);
      });
    queues.set(accountId, queue);
  }

  const subscription = events.subscribe({
    after: start.position,
    categories: ['account', 'repository'],
    onEvents: async (batch) => {
      for (const event of batch) {
        await progress.room(signal);
        if (signal.aborted) return;
        if (event.isRecord) record = recordPlaceOf(event);
        // A restart must not begin inside an append.
        const mark = missingOfAppend(event) > 0 || record === null ? null : { position: event.position, record };
        if (isRelevant(event)) processInOrder(event, mark);
        else progress.begin(mark)();
      }
    },
  });
  try {
    await untilAborted(signal, subscription.closed);
  } finally {
    await Promise.allSettled([subscription.close()]);
    await Promise.all(queues.values());
    await progress.saved();
  }
}

function isRelevant({ stream, type }: RecordedEvent): boolean {
  return categoryOf(stream) === 'repository' ? type === 'RefsUpdated' : type === 'AccountErased';
}

/** Tries until the event is done. Resolves false only if the signal is aborted before that. */
async function processUntilDone(
  context: FollowPushesContext,
  event: RecordedEvent,
  turn: Turn,
  signal: AbortSignal,
): Promise<boolean> {
  let tries = 0;
  let withoutObjects = false;
  const pauses = backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
  while (!signal.aborted) {
    try {
      await followUp(context, event, turn, withoutObjects);
      return true;
    } catch (error) {
      context.onFault(error);
      if (!isOutage(error)) tries += 1;
      // The objects cannot be read. A push with a hostile object must still be delivered, so the next try leaves them
      // out.
      if ((tries === TRIES_MAX || isBeyondBounds(error)) && !withoutObjects) {
        withoutObjects = true;
        tries = 0;
      }
      if (tries === TRIES_MAX) {
        const { stream, revision } = event;
        context.log.error(
          { err: error, stream, revision },
          'Webhooks could not be notified of an event: it is skipped',
        );
        return true;
      }
    }
    await context.pause(pauses.next(), signal);
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
  const keptMs = Math.max(context.retentionMs, PENDING_DELIVERY_KEPT_MS);
  if (event.occurredAt < plusMs(context.clock.now(), -keptMs)) return;
  await notifyOfPush(context, await context.complete(event), turn, { withoutObjects });
}

interface Start {
  readonly position: LogPosition;
  readonly record: RecordPlace | null;
}

/** Returns where it stopped the last time, if this is the same log. */
async function startOf(context: FollowPushesContext): Promise<Start> {
  const { events, marks, log } = context;
  const mark = await marks.read(NOTIFICATIONS_POLICY);
  if (mark === null) return firstStartOf(context);
  const current = await provenMark(events, mark);
  if (current !== null) return current;
  const { stream, revision } = mark.record;
  log.warn(
    { stream, revision },
    'This is not the log that webhooks were notified of before: following it from the start',
  );
  return firstStartOf(context);
}

/**
 * Returns the log's start, because processing a push again is idempotent. Returns the log's head if no webhook exists
 * and no body is stored: then even a million pushes need no delivery. A webhook's secret is in the vault before the
 * event that names it. So the head, which is read first, is before every webhook that this check does not see. No mark
 * is saved here: the next event saves one.
 */
async function firstStartOf({ events, vault, deliveries }: FollowPushesContext): Promise<Start> {
  const head = await events.head();
  const fromHead = !(await vault.holds('webhook-secret')) && (await deliveries.isEmpty());
  return { position: fromHead ? head : LOG_START, record: null };
}

interface Begun {
  /** Null if a restart must not begin right after this event. */
  readonly mark: ReadMark | null;
  done: boolean;
}

interface ProgressOptions {
  readonly save: (mark: ReadMark) => Promise<void>;
  /** Waits between two saves. */
  readonly pause: () => Promise<void>;
  readonly onFault: (cause: unknown) => void;
  /** After it is aborted, a failed save is not retried. */
  readonly signal: AbortSignal;
}

/** Tracks the events that are under way, in order, and saves the mark up to which all events are done. */
class Progress {
  readonly #options: ProgressOptions;
  #begun: Begun[] = [];
  #reached: ReadMark | null = null;
  #saving: Promise<void> | null = null;
  #wake: (() => void)[] = [];

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  /** Adds an event. The caller calls the returned function when the event is done. */
  begin(mark: ReadMark | null): () => void {
    const begun: Begun = { mark, done: false };
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
        const wake = (): void => {
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#wake.push(wake);
        signal.addEventListener('abort', wake, { once: true });
      });
    }
  }

  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  #advance(): void {
    const undone = this.#begun.findIndex(({ done }) => !done);
    const count = undone === -1 ? this.#begun.length : undone;
    if (count === 0) return;
    const done = this.#begun.slice(0, count);
    this.#begun = this.#begun.slice(count);
    for (const wake of this.#wake.splice(0)) wake();
    const reached = done.findLast(({ mark }) => mark !== null)?.mark ?? null;
    if (reached === null) return;
    this.#reached = reached;
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
        // A later mark includes this one. If none is saved, a restart processes the events again, which is idempotent.
        if (!signal.aborted) this.#reached ??= mark;
      }
      await pause();
    }
    this.#saving = null;
  }
}
