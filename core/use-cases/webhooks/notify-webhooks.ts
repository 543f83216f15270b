/**
 * The policy that requests the webhook deliveries of a push, from one `RefsUpdated`.
 *
 * Must stay true: the webhooks and their payloads are derived from the log up to the event and from the repository's
 * objects alone, and every id is derived from the event's id. So the policy is idempotent. Deliveries are requested in
 * the order of the push's refs, and of the events of each ref.
 */
import { utf8Length } from '../../git/utf8.ts';
import { isSelected } from '../../access-token/repository-selection.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { Webhook } from '../../account/webhooks/state.ts';
import type { RecentCounts } from '../../kernel/recent-counts.ts';
import { readEvent } from '../../kernel/decider.ts';
import { type Cause, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, type ObjectId, objectId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import {
  BUCKET_BACKGROUND_TRIES_MAX,
  WEBHOOK_PAYLOAD_BYTES_MAX,
  WEBHOOK_PUSH_PAYLOADS_BYTES_MAX,
  WEBHOOK_PUSH_REFS_MAX,
} from '../../kernel/limits.ts';
import { LayerStoreError } from '../../ports/layer-store.ts';
import type { Log } from '../../ports/log.ts';
import type { ObjectDatabase, ObjectReader } from '../../ports/object-database.ts';
import {
  type RefsUpdated,
  type RepositoryEvent,
  repositoryEventKinds,
  type StoredRefUpdate,
} from '../../repository/events.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import { webhookDeliveries } from '../../webhook-delivery/evolve.ts';
import { deliveryIdOf, eventIdOf, eventsOfUpdate } from '../../webhook-delivery/notifications.ts';
import { type PayloadRepository, type RefEvent, refEventPayload } from '../../webhook-delivery/payload.ts';
import { payloadTag } from '../../webhook-delivery/payload-texts.ts';
import type { Entity } from '../../runtime/entity.ts';
import { commitTip, type NewCommits, newCommitsOf } from './new-commits-of-push.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { committedObjects } from '../reading/committed-objects.ts';
import { type BudgetContext, takeBudget } from './delivery-budget.ts';
import type { PendingRoom } from './pending-room.ts';
import type { Expanded } from './stalled-accounts.ts';
import { type DeliveryContext, type NotificationBody, requestDelivery, storePayloads } from './webhook-deliveries.ts';
import { systemCause } from '../../runtime/system-cause.ts';

export interface NotifyContext extends DeliveryContext, BudgetContext {
  readonly past: PastEntities;
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /** Resolves with the work's value, or with null after `BUCKET_BACKGROUND_WAIT_MS`. */
  readonly inTime: <Value>(work: Promise<Value>) => Promise<Value | null>;
  /** How often each bucket of a user failed, or kept the policy waiting, lately. */
  readonly bucketFailures: RecentCounts;
  /** The URL of the website, without a slash at its end. */
  readonly webUrl: string;
  readonly log: Log;
}

/** Runs a slice of work when its turn comes, so that a wide push does not delay the pushes of other accounts. */
export type Turn = <Result>(slice: () => Promise<Result>) => Promise<Result>;

/** The number of refs that are processed in one turn. */
const SLICE_REFS_MAX = 20;

/** The facts that the deliveries of a push are made of. */
interface PushFacts {
  readonly webhooks: readonly Webhook[];
  readonly repository: PayloadRepository;
  readonly accountId: AccountId;
  readonly owned: OwnedRepository;
  readonly entity: Entity<OpenRepository>;
  readonly event: RecordedEvent;
  readonly cause: Cause;
}

export interface NotifyOptions {
  /** The payloads lack the facts of the repository's objects, which cannot be read. */
  readonly withoutObjects: boolean;
  /** How many refs have their deliveries, from an earlier call that ran out of room. */
  readonly refsDone: number;
  readonly room: Pick<PendingRoom, 'hasRoom' | 'requested'>;
}

/**
 * Requests the deliveries of a `RefsUpdated` whose updates are in place. Ends early, and returns how far it came, when the
 * account has no room for more, or no hour left for them.
 */
export async function notifyOfPush(
  context: NotifyContext,
  event: RecordedEvent,
  turn: Turn,
  options: NotifyOptions,
): Promise<Expanded> {
  const push = await turn(() => prepare(context, event));
  if (push === null) return null;
  const { updates } = refsUpdated(event);
  const notified = updates.filter((update) => eventsOfUpdate(update).length > 0).slice(0, WEBHOOK_PUSH_REFS_MAX);
  if (notified.length <= options.refsDone) return null;
  const bytesMax = payloadShare(notified);
  const reader = options.withoutObjects ? null : await openInTurn(context, push, turn);
  try {
    const commits =
      reader === null ? null : await turn(() => newCommitsOf(reader, push.entity.state, notified, updates));
    const sources = { reader, commits, bytesMax };
    for (let at = options.refsDone; at < notified.length; at += SLICE_REFS_MAX) {
      const slice = notified.slice(at, at + SLICE_REFS_MAX);
      const done = await turn(() => requestDeliveries(context, push, slice, sources, options.room));
      if (done < slice.length) return { refsDone: at + done };
    }
    return null;
  } finally {
    reader?.close();
  }
}

/** Returns how many bytes each payload may have. It depends on the push alone, not on the webhooks that listen. */
function payloadShare(notified: readonly StoredRefUpdate[]): number {
  let events = 0;
  for (const update of notified) events += eventsOfUpdate(update).length;
  return Math.min(WEBHOOK_PAYLOAD_BYTES_MAX, Math.floor(WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / events));
}

function refsUpdated(event: RecordedEvent): RefsUpdated['data'] {
  const read = readEvent(repositoryEventKinds, event);
  if (read.type !== 'RefsUpdated') throw new TypeError(`${event.type} is not a push`);
  return read.data;
}

/** Reads the facts of a push; null if no webhook listens. */
async function prepare(context: NotifyContext, event: RecordedEvent): Promise<PushFacts | null> {
  const { past, webUrl, ids } = context;
  if (event.accountId === null) return null;
  const account = await past.accountAt(event.accountId, event.position);
  if (account.status !== 'open') return null;
  const id = uuid<RepositoryId>(entityIdOf(event.stream));
  const webhooks = [...account.webhooks.values()].filter(
    ({ active, events, repositories }) => active && listensForRefs(events) && isSelected(repositories, id),
  );
  if (webhooks.length === 0) return null;
  const entity = await past.repositoryAt(id, event.revision);
  const owned = account.repositories.get(id);
  if (entity.state.status === 'closed' || owned === undefined) return null;
  const open = { ...entity, state: entity.state };
  const chosen = await chosenDefaultBranch(context, open, event);
  const defaultBranch = chosen ?? owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH;
  const owner = { id: event.accountId, username: account.username };
  const repository = { id, name: owned.name, defaultBranch, owner, webUrl };
  const cause = systemCause(ids, 'webhook-notifications', event.id);
  return { webhooks, repository, accountId: event.accountId, owned, entity: open, event, cause };
}

function listensForRefs(events: Webhook['events']): boolean {
  return events.some((kind) => kind !== 'ping');
}

/** The default branch that somebody chose, or this push: its own choice is the next event, in the same append. */
async function chosenDefaultBranch(
  { events }: Pick<NotifyContext, 'events'>,
  { state }: Entity<OpenRepository>,
  { stream, revision, requestId }: RecordedEvent,
): Promise<string | null> {
  if (state.defaultBranch !== null) return state.defaultBranch;
  const [next] = await events.readStream(stream, { direction: 'forwards', from: revision + 1, limit: 1 });
  if (next === undefined || next.requestId !== requestId) return null;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, next);
  return event.type === 'DefaultBranchChanged' ? event.data.default_branch : null;
}

/** Opens the objects; null if they are in a bucket of a user that failed again and again, so that nobody waits for it. */
async function openInTurn(context: NotifyContext, push: PushFacts, turn: Turn): Promise<ObjectReader | null> {
  const { bucketFailures } = context;
  const bucket = push.owned.storageBucketId;
  if (bucket === null) return turn(() => openObjects(context, push));
  if (bucketFailures.of(bucket) >= BUCKET_BACKGROUND_TRIES_MAX) return null;
  try {
    return await openInTime(context, push);
  } catch (error) {
    bucketFailures.add(bucket, 1);
    throw error;
  }
}

/** Takes no turn, which others need. An opening that takes too long goes on for the cache's sake. */
async function openInTime(context: NotifyContext, push: PushFacts): Promise<ObjectReader> {
  const opening = openObjects(context, push);
  const inTime = await context.inTime(opening);
  if (inTime !== null) return inTime;
  opening.then(
    (reader) => reader.close(),
    () => undefined,
  );
  throw new LayerStoreError('timed-out', 'The bucket of the repository takes too long');
}

async function openObjects({ objects }: NotifyContext, { accountId, owned, entity }: PushFacts): Promise<ObjectReader> {
  return objects.open(committedObjects({ id: owned.id, accountId, owned }, entity));
}

interface PayloadSources {
  /** Null if the objects cannot be read. */
  readonly reader: ObjectReader | null;
  /** Null if the objects cannot be read. */
  readonly commits: NewCommits | null;
  /** The bound of one payload. */
  readonly bytesMax: number;
}

/**
 * Stores the payloads of some refs, then requests their deliveries, event by event. Returns how many of the refs have all
 * of theirs: fewer if the account has no room.
 */
async function requestDeliveries(
  context: NotifyContext,
  { webhooks, repository, event, cause }: PushFacts,
  updates: readonly StoredRefUpdate[],
  { reader, commits, bytesMax }: PayloadSources,
  room: NotifyOptions['room'],
): Promise<number> {
  const bodies: (NotificationBody & { readonly event: RefEvent; readonly ref: number })[] = [];
  for (const [ref, update] of updates.entries()) {
    const kinds = eventsOfUpdate(update).filter((kind) => webhooks.some(({ events }) => events.includes(kind)));
    if (kinds.length === 0) continue;
    const facts = {
      newCommits: (await commits?.of(update)) ?? [],
      headCommit: await headCommitOf(reader, update),
      annotation: await annotationOf(reader, update),
    };
    for (const kind of kinds) {
      const eventId = eventIdOf(context.ids, event.id, kind, update.ref);
      const refEvent: RefEvent = { eventId, kind, update, repository, ...facts };
      bodies.push({ ref, event: refEvent, eventId, body: refEventPayload(refEvent, bytesMax) });
    }
  }
  if (bodies.length === 0) return updates.length;
  const digests = await storePayloads(context, repository.owner.id, bodies);
  await context.failpoint('webhook-payload-stored');
  const origin = { account: repository.owner.id, cause };
  for (const [index, body] of bodies.entries()) {
    const payloadSha256 = digests[index] ?? '';
    const { eventId, kind } = body.event;
    const listening = await notRequested(context, body.event, webhooks);
    if (listening.length === 0) continue;
    const wanted = { eventId, event: kind, repositoryId: repository.id, payloadSha256 };
    if (!(await room.hasRoom(origin.account, listening.length))) return body.ref;
    const attempts = { count: listening.length, payloadBytes: utf8Length(body.body) };
    const times = await takeBudget(context, origin.account, attempts);
    if (times === null) return body.ref;
    const requested = listening.map(async ({ id }, at) => {
      const made = await requestDelivery(context, origin, { ...wanted, webhookId: id, notBefore: times[at] ?? null });
      if (!('refused' in made)) room.requested(origin.account, 1, made.position);
    });
    // All requests settle before an error is thrown, so that none still runs after the slice has failed.
    for (const settled of await Promise.allSettled(requested)) {
      if (settled.status === 'rejected') throw settled.reason;
    }
    await context.failpoint('webhook-delivery-requested');
  }
  return updates.length;
}

/** Returns the webhooks that listen and were not told before: what was requested once takes no budget again. */
async function notRequested(
  { entities, ids }: NotifyContext,
  { eventId, kind }: RefEvent,
  webhooks: readonly Webhook[],
): Promise<readonly Webhook[]> {
  const listening = webhooks.filter(({ events }) => events.includes(kind));
  const known = await Promise.all(
    listening.map(async ({ id }) => entities.get(webhookDeliveries, deliveryIdOf(ids, eventId, id, kind))),
  );
  return listening.filter((_, at) => known[at]?.state.status === 'absent');
}

/** Returns the commit that a ref peels to. Only the objects show whether a tag peels to a commit. */
async function headCommitOf(reader: ObjectReader | null, update: StoredRefUpdate): Promise<ObjectId | null> {
  const tip = commitTip(update);
  if (tip === null || update.type === 'commit' || reader === null) return tip;
  const [info] = await reader.lookup([tip]);
  return info?.type === 'commit' ? tip : null;
}

async function annotationOf(reader: ObjectReader | null, update: StoredRefUpdate): Promise<RefEvent['annotation']> {
  if (update.type !== 'tag' || reader === null) return null;
  const tag = await reader.tag(objectId(update.after));
  return tag === null ? null : payloadTag(tag);
}
