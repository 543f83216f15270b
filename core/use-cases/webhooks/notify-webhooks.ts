/**
 * The policy that tells webhooks of pushes: from one `RefsUpdated` to the deliveries of its events.
 *
 * Must stay true: who is told, and what, follows from the log up to the event and from the repository's objects, and every id
 * follows from the event's, so that telling again changes nothing; events are told in their order, ref by ref.
 */
import type { Webhook } from '../../account/state.ts';
import { readEvent } from '../../kernel/decider.ts';
import { type Cause, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type ObjectId, objectId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import {
  WEBHOOK_PAYLOAD_BYTES_MAX,
  WEBHOOK_PUSH_PAYLOADS_BYTES_MAX,
  WEBHOOK_PUSH_REFS_MAX,
} from '../../kernel/limits.ts';
import type { Log } from '../../ports/log.ts';
import type { ObjectDatabase, ObjectReader } from '../../ports/object-database.ts';
import {
  type RefsUpdated,
  type RepositoryEvent,
  repositoryEventKinds,
  type StoredRefUpdate,
} from '../../repository/events.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import { eventIdOf, eventsOfUpdate } from '../../webhook-delivery/notifications.ts';
import { type PayloadRepository, type RefEvent, refEventPayload } from '../../webhook-delivery/payload.ts';
import { toldTag } from '../../webhook-delivery/payload-texts.ts';
import type { Entity } from '../../runtime/entity.ts';
import { commitTip, type NewCommits, newCommitsOf } from './new-commits-of-push.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { committedObjects } from '../pushing/push-refs.ts';
import { type DeliveryContext, requestDelivery, storePayloads } from './webhook-deliveries.ts';
import { systemCause } from '../../runtime/system-cause.ts';

export interface NotifyContext extends DeliveryContext {
  readonly past: PastEntities;
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /** Of the website, without a slash at its end. */
  readonly webUrl: string;
  readonly log: Log;
}

/** Runs a slice of work when its turn comes, so that a wide push does not hold up other accounts'. */
export type Turn = <Result>(slice: () => Promise<Result>) => Promise<Result>;

/** Refs told in one turn. */
const SLICE_REFS_MAX = 20;

/** What a push is told with. */
interface Telling {
  readonly webhooks: readonly Webhook[];
  readonly repository: PayloadRepository;
  readonly entity: Entity<OpenRepository>;
  readonly event: RecordedEvent;
  readonly cause: Cause;
}

/**
 * Requests the deliveries of a `RefsUpdated` whose updates are in place. `withoutObjects` tells it without what the
 * objects say, where they cannot be read.
 */
export async function notifyOfPush(
  context: NotifyContext,
  event: RecordedEvent,
  turn: Turn,
  options: { readonly withoutObjects: boolean },
): Promise<void> {
  const telling = await turn(() => prepare(context, event));
  if (telling === null) return;
  const { updates } = refsUpdated(event);
  const told = updates.filter((update) => eventsOfUpdate(update).length > 0).slice(0, WEBHOOK_PUSH_REFS_MAX);
  if (told.length === 0) return;
  const bytesMax = payloadShare(told);
  const reader = options.withoutObjects ? null : await turn(() => openObjects(context, telling));
  try {
    const commits =
      reader === null ? null : await turn(() => newCommitsOf(reader, telling.entity.state, told, updates));
    for (let at = 0; at < told.length; at += SLICE_REFS_MAX) {
      const slice = told.slice(at, at + SLICE_REFS_MAX);
      await turn(() => tell(context, telling, slice, { reader, commits, bytesMax }));
    }
  } finally {
    reader?.close();
  }
}

/** Bytes that each payload of the push may have: whoever listens, so that it follows from the push alone. */
function payloadShare(told: readonly StoredRefUpdate[]): number {
  let events = 0;
  for (const update of told) events += eventsOfUpdate(update).length;
  return Math.min(WEBHOOK_PAYLOAD_BYTES_MAX, Math.floor(WEBHOOK_PUSH_PAYLOADS_BYTES_MAX / events));
}

function refsUpdated(event: RecordedEvent): RefsUpdated['data'] {
  const read = readEvent(repositoryEventKinds, event);
  if (read.type !== 'RefsUpdated') throw new TypeError(`${event.type} is no push`);
  return read.data;
}

/** Null when nobody listens. */
async function prepare(context: NotifyContext, event: RecordedEvent): Promise<Telling | null> {
  const { past, webUrl, ids } = context;
  if (event.accountId === null) return null;
  const account = await past.accountAt(event.accountId, event.position);
  if (account.status !== 'open') return null;
  const webhooks = [...account.webhooks.values()].filter(({ active, events }) => active && listensForRefs(events));
  if (webhooks.length === 0) return null;
  const id = uuid<RepositoryId>(entityIdOf(event.stream));
  const entity = await past.repositoryAt(id, event.revision);
  const owned = account.repositories.get(id);
  if (entity.state.status === 'closed' || owned === undefined) return null;
  const standing = { ...entity, state: entity.state };
  const chosen = await chosenDefaultBranch(context, standing, event);
  const defaultBranch = chosen ?? owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH;
  const owner = { id: event.accountId, username: account.username };
  const repository = { id, name: owned.name, defaultBranch, owner, webUrl };
  const cause = systemCause(ids, 'webhook-notifications', event.id);
  return { webhooks, repository, entity: standing, event, cause };
}

function listensForRefs(events: Webhook['events']): boolean {
  return events.some((kind) => kind !== 'ping');
}

/** A push's own choice stands right after it, in the same append. */
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

async function openObjects({ objects }: NotifyContext, { entity, repository }: Telling): Promise<ObjectReader> {
  return objects.open(committedObjects(repository.id, entity));
}

interface Objects {
  readonly reader: ObjectReader | null;
  /** Null without objects. */
  readonly commits: NewCommits | null;
  /** Of one payload. */
  readonly bytesMax: number;
}

/** Stores the payloads of some refs, then requests their deliveries, event by event. */
async function tell(
  context: NotifyContext,
  { webhooks, repository, event, cause }: Telling,
  updates: readonly StoredRefUpdate[],
  { reader, commits, bytesMax }: Objects,
): Promise<void> {
  const bodies: { readonly event: RefEvent; readonly eventId: RefEvent['eventId']; readonly body: string }[] = [];
  for (const update of updates) {
    const kinds = eventsOfUpdate(update).filter((kind) => webhooks.some(({ events }) => events.includes(kind)));
    if (kinds.length === 0) continue;
    const said = {
      newCommits: (await commits?.of(update)) ?? [],
      headCommit: await headCommitOf(reader, update),
      annotation: await annotationOf(reader, update),
    };
    for (const kind of kinds) {
      const eventId = eventIdOf(context.ids, event.id, kind, update.ref);
      const refEvent: RefEvent = { eventId, kind, update, repository, ...said };
      bodies.push({ event: refEvent, eventId, body: refEventPayload(refEvent, bytesMax) });
    }
  }
  if (bodies.length === 0) return;
  const digests = await storePayloads(context, repository.owner.id, bodies);
  await context.reach('webhook-payload-stored');
  const origin = { account: repository.owner.id, cause };
  for (const [index, body] of bodies.entries()) {
    const payloadSha256 = digests[index] ?? '';
    const { eventId, kind } = body.event;
    const listening = webhooks.filter(({ events }) => events.includes(kind));
    const wanted = { eventId, event: kind, repositoryId: repository.id, payloadSha256 };
    const requested = listening.map(({ id }) => requestDelivery(context, origin, { ...wanted, webhookId: id }));
    // All settle before one may throw, so that none goes on for a slice that was given up.
    for (const settled of await Promise.allSettled(requested)) {
      if (settled.status === 'rejected') throw settled.reason;
    }
    await context.reach('webhook-delivery-requested');
  }
}

/** The commit a ref leads to. A tag may be peeled to a tree or a blob: only the objects tell. */
async function headCommitOf(reader: ObjectReader | null, update: StoredRefUpdate): Promise<ObjectId | null> {
  const tip = commitTip(update);
  if (tip === null || update.type === 'commit' || reader === null) return tip;
  const [info] = await reader.lookup([tip]);
  return info?.type === 'commit' ? tip : null;
}

async function annotationOf(reader: ObjectReader | null, update: StoredRefUpdate): Promise<RefEvent['annotation']> {
  if (update.type !== 'tag' || reader === null) return null;
  const tag = await reader.tag(objectId(update.after));
  return tag === null ? null : toldTag(tag);
}
