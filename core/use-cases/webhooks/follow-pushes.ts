/**
 * Follows the log from where it stopped the last time, and requests the webhook deliveries of every push.
 *
 * Invariants: the checkpoint is before the oldest push that is not finished, so that no push is lost. The pushes of
 * one account are processed in the order of the log, and those of other accounts need not wait for them, also while one
 * waits for its hour or for room (accounts-over-budget.ts). The memory that it takes is bounded.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { untilAborted } from '../../kernel/aborted.ts';
import { backoff } from '../../kernel/backoff.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, LOG_START, type LogPosition, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, uuid, type WebhookId } from '../../kernel/ids.ts';
import { PENDING_DELIVERY_KEPT_MS } from '../../kernel/limits.ts';
import { missingOfAppend } from '../../kernel/whole-appends.ts';
import type { Pause } from '../../ports/clock.ts';
import type { PendingDeliveries } from '../../ports/due-deliveries.ts';
import type { NotifiedPushesStore } from '../../ports/notified-pushes.ts';
import { isBeyondBounds } from '../../ports/object-database.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { ReadMark, RecordPlace } from '../../ports/read-mark.ts';
import type { Vault } from '../../ports/vault.ts';
import type { WaitingDeliveries } from '../../ports/waiting-deliveries.ts';
import type { WaitingPushes } from '../../ports/waiting-pushes.ts';
import { isOutage } from '../../runtime/is-outage.ts';
import type { Complete } from '../../runtime/read-entity.ts';
import { provenMark, recordPlaceOf } from '../../runtime/read-mark.ts';
import { untilDone } from '../../runtime/until-done.ts';
import { type Expand, type Expanded, StalledAccounts } from './accounts-over-budget.ts';
import { paceOf } from './delivery-budget.ts';
import { FollowProgress } from './follow-progress.ts';
import { WEBHOOK_ROOM_LOOK_FIRST_MS } from './limits.ts';
import { type NotifyContext, type NotifyOptions, notifyOfPush } from './notify-webhooks.ts';
import { createPendingRoom, type PendingBounds, type PendingRoom } from './pending-delivery-limit.ts';
import { deliveriesOfRow } from './postponed-deliveries.ts';
import type { Turn } from './push-context.ts';

export interface FollowPushesContext extends NotifyContext {
  readonly marks: PolicyMarks;
  readonly notified: Pick<NotifiedPushesStore, 'save'>;
  readonly vault: Pick<Vault, 'holds'>;
  readonly waiting: WaitingDeliveries;
  /** Pushes for whose rows an account has no room. */
  readonly pushes: WaitingPushes;
  readonly due: PendingDeliveries;
  /** How many deliveries of an account may be pending. */
  readonly pendingBounds: PendingBounds;
  /** Puts back the parts of an event that are on another stream. */
  readonly complete: Complete;
  /**
   * Older pushes are skipped, because the bodies of their deliveries would be removed immediately. A push whose
   * deliveries are late, because this was down, is not skipped for a day, however short the retention.
   */
  readonly retentionMs: number;
  readonly pause: Pause;
  readonly onFault: (cause: unknown) => void;
}

/** The checkpoint of this policy: webhooks are notified of every push up to it. */
const NOTIFICATIONS_POLICY = 'webhook-notifications';
/** The number of slices of work that run at a time. */
const TURNS_AT_ONCE = 4;
/** How often a push is tried, and again without its objects, unless something that it needs is away. */
export const TRIES_MAX = 6;
const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 5_000;
/** The mark is saved at most this often. A save slows every push down, and processing a push again is idempotent. */
const SAVE_INTERVAL_MS = 1_000;

/** Runs until the signal is aborted and all work has stopped. Rejects if the log cannot be followed. */
export async function followPushes(context: FollowPushesContext, signal: AbortSignal): Promise<void> {
  const { events, marks } = context;
  const start = await beginning(context);
  let record = start.record;
  const progress = new FollowProgress({
    save: (mark) => marks.save(NOTIFICATIONS_POLICY, mark),
    saveNotified: (notified) => context.notified.save(notified),
    pause: () => context.pause(SAVE_INTERVAL_MS, signal),
    onFault: context.onFault,
    signal,
  });
  const turn = createConcurrencyLimit(TURNS_AT_ONCE);
  const room = createPendingRoom(context.due, context.pendingBounds);
  const expand: Expand = (event, from) => expandUntilDone(context, event, { turn, room, from, signal });
  const stalled = stalledAccounts(context, room, expand);
  await stalled.load();
  const queues = new Map<AccountId, Promise<void>>();

  /** The work of one account is done in order. It must not reject. */
  function enqueue(account: AccountId, work: () => Promise<void>): void {
    const queue = (queues.get(account) ?? Promise.resolve()).then(work).then(() => {
      if (queues.get(account) === queue) queues.delete(account);
    });
    queues.set(account, queue);
  }

  function processInOrder(event: RecordedEvent, mark: ReadMark | null): void {
    const { accountId, position } = event;
    const done = progress.begin({ position, account: accountId, mark });
    if (accountId === null) {
      done();
      return;
    }
    enqueue(accountId, async () => {
      if (await processUntilDone(context, event, { stalled, expand, signal })) done();
    });
  }

  const resuming = whileNotAborted(context, signal, () => {
    for (const account of stalled.dueToResume()) {
      // A queue that is busy is looked at again.
      if (!queues.has(account)) enqueue(account, () => stalled.resume(account).catch(context.onFault));
    }
  }).catch(context.onFault);

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
        else progress.begin({ position: event.position, account: null, mark })();
      }
    },
  });
  try {
    await untilAborted(signal, subscription.closed);
  } finally {
    await Promise.allSettled([subscription.close(), resuming]);
    await Promise.all(queues.values());
    await progress.saved();
  }
}

function stalledAccounts(context: FollowPushesContext, room: PendingRoom, expand: Expand): StalledAccounts {
  const { events, due, waiting, failpoint, onFault } = context;
  return new StalledAccounts({
    ...context,
    room,
    expand,
    paceOf: (account) => paceOf(context, account),
    add: async (event, rows) => {
      const push = await context.complete(event);
      for (const row of rows) {
        const ids = deliveriesOfRow(context, push, row).map(({ id }) => id);
        await waiting.add(row, ids);
        await failpoint('webhook-push-waits');
      }
    },
    listed: async () => {
      // A list that is behind shows them when it has caught up.
      await due.deliveriesCaughtUp(await events.head()).catch(onFault);
      await failpoint('webhook-rows-expanded');
    },
  });
}

function isRelevant({ stream, type }: RecordedEvent): boolean {
  if (categoryOf(stream) === 'repository') return type === 'RefsUpdated';
  return type === 'AccountErased' || type === 'WebhookDeleted';
}

/** Looks for accounts with room at intervals; costs nothing while no account is stalled. */
async function whileNotAborted(
  { pause }: Pick<FollowPushesContext, 'pause'>,
  signal: AbortSignal,
  look: () => void,
): Promise<void> {
  while (!signal.aborted) {
    await pause(WEBHOOK_ROOM_LOOK_FIRST_MS, signal);
    if (!signal.aborted) look();
  }
}

interface Processing {
  readonly stalled: StalledAccounts;
  readonly expand: Expand;
  readonly signal: AbortSignal;
}

/** Expands the event, or stores that it waits. Resolves false only if the signal is aborted before that. */
async function processUntilDone(
  context: FollowPushesContext,
  event: RecordedEvent,
  { stalled, expand, signal }: Processing,
): Promise<boolean> {
  const account = event.accountId;
  if (account === null) return true;
  const isDone = async (work: () => Promise<void>) => (await untilDone(context, signal, work)) !== null;
  if (event.type === 'AccountErased') {
    return isDone(async () => {
      await context.deliveries.forgetAccount(account);
      await stalled.forget(account);
    });
  }
  if (event.type === 'WebhookDeleted') {
    const deleted = readEvent<AccountEvent>(accounts.kinds, event);
    if (deleted.type !== 'WebhookDeleted') throw new TypeError(`${event.type} is no deletion of a webhook`);
    const webhook = uuid<WebhookId>(deleted.data.webhook_id);
    return isDone(() => stalled.forgetWebhook(account, webhook));
  }
  const waits = stalled.has(account);
  const full = await untilDone(context, signal, async () => waits && (await stalled.isFull(account)));
  if (full === null) return false;
  if (full) return isDone(() => stalled.put(account, event));
  const left = await expand(event, { rows: null, rowsOnly: waits, refsDone: 0 });
  if (left === 'aborted') return false;
  return left.length === 0 || isDone(() => stalled.hold(account, event, left));
}

interface Expanding {
  readonly turn: Turn;
  readonly room: PendingRoom;
  readonly from: Parameters<Expand>[1];
  readonly signal: AbortSignal;
}

/** Tries until the push is expanded as far as there is room. A push that cannot be expanded is skipped. */
async function expandUntilDone(
  context: FollowPushesContext,
  event: RecordedEvent,
  { turn, room, from, signal }: Expanding,
): Promise<Expanded> {
  let tries = 0;
  let withoutObjects = false;
  const pauses = backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
  while (!signal.aborted) {
    try {
      return await followUp(context, event, turn, { ...from, withoutObjects, room });
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
        return [];
      }
    }
    await context.pause(pauses.next(), signal);
  }
  return 'aborted';
}

async function followUp(
  context: FollowPushesContext,
  event: RecordedEvent,
  turn: Turn,
  options: NotifyOptions,
): Promise<Expanded> {
  const keptMs = Math.max(context.retentionMs, PENDING_DELIVERY_KEPT_MS);
  if (event.occurredAt < plusMs(context.clock.now(), -keptMs)) return [];
  return notifyOfPush(context, await context.complete(event), turn, options);
}

interface Start {
  readonly position: LogPosition;
  readonly record: RecordPlace | null;
}

/** Says first how far webhooks were notified: what was said before may be of another log. */
async function beginning(context: FollowPushesContext): Promise<Start> {
  const start = await startOf(context);
  await context.notified.save({ reached: start.position, undone: new Map() });
  return start;
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
