/**
 * What the deliveries of a push are made of: the webhooks that listened, the repository, and its objects.
 *
 * Invariants: all but the objects follows from the log up to the push, however late this is read. The objects of a
 * push whose deliveries waited are read as the repository stands now, since layers that were replaced since may be
 * gone.
 */
import { isSelected } from '../../access-token/repository-selection.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { Webhook } from '../../account/webhooks/state.ts';
import { readEvent } from '../../kernel/decider.ts';
import { type Cause, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { RecentCounts } from '../../kernel/recent-counts.ts';
import { LayerStoreError } from '../../ports/layer-store.ts';
import type { ObjectDatabase, ObjectReader } from '../../ports/object-database.ts';
import { type RefsUpdated, type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import type { Context } from '../../runtime/execute.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import type { PayloadRepository } from '../../webhook-delivery/payload.ts';
import { committedObjects } from '../reading/committed-objects.ts';

/**
 * How many times work behind pushes tries a bucket of a user; then it goes on without the objects. Internal: it is the
 * pace of background work.
 */
export const BUCKET_BACKGROUND_TRIES_MAX = 3;

export interface PushFactsContext extends Context {
  readonly past: PastEntities;
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /** Resolves with the work's value, or with null after `BUCKET_BACKGROUND_WAIT_MS`. */
  readonly inTime: <Value>(work: Promise<Value>) => Promise<Value | null>;
  /** How often each bucket of a user failed, or kept the policy waiting, lately. */
  readonly bucketFailures: RecentCounts;
  /** The URL of the website, without a slash at its end. */
  readonly webUrl: string;
}

/** Runs a slice of work when its turn comes, so that a wide push does not delay the pushes of other accounts. */
export type Turn = <Result>(slice: () => Promise<Result>) => Promise<Result>;

export interface PushFacts {
  readonly webhooks: readonly Webhook[];
  readonly repository: PayloadRepository;
  readonly accountId: AccountId;
  readonly owned: OwnedRepository;
  readonly entity: Entity<OpenRepository>;
  readonly event: RecordedEvent;
  readonly cause: Cause;
}

export function refsUpdated(event: RecordedEvent): RefsUpdated['data'] {
  const read = readEvent(repositoryEventKinds, event);
  if (read.type !== 'RefsUpdated') throw new TypeError(`${event.type} is not a push`);
  return read.data;
}

/** Reads the facts of a push; null if no webhook listens. */
export async function pushFacts(context: PushFactsContext, event: RecordedEvent): Promise<PushFacts | null> {
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
  { events }: Pick<Context, 'events'>,
  { state }: Entity<OpenRepository>,
  { stream, revision, requestId }: RecordedEvent,
): Promise<string | null> {
  if (state.defaultBranch !== null) return state.defaultBranch;
  const [next] = await events.readStream(stream, { direction: 'forwards', from: revision + 1, limit: 1 });
  if (next === undefined || next.requestId !== requestId) return null;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, next);
  return event.type === 'DefaultBranchChanged' ? event.data.default_branch : null;
}

/**
 * Opens the objects; null if they are in a bucket of a user that failed again and again, so that nobody waits for it.
 */
export async function openInTurn(
  context: PushFactsContext,
  push: PushFacts,
  waited: boolean,
  turn: Turn,
): Promise<ObjectReader | null> {
  const { bucketFailures } = context;
  const bucket = push.owned.storageBucketId;
  if (bucket === null) return turn(() => openObjects(context, push, waited));
  if (bucketFailures.of(bucket) >= BUCKET_BACKGROUND_TRIES_MAX) return null;
  try {
    return await openInTime(context, push, waited);
  } catch (error) {
    bucketFailures.add(bucket, 1);
    throw error;
  }
}

/** Takes no turn, which others need. An opening that takes too long goes on for the cache's sake. */
async function openInTime(context: PushFactsContext, push: PushFacts, waited: boolean): Promise<ObjectReader> {
  const opening = openObjects(context, push, waited);
  const inTime = await context.inTime(opening);
  if (inTime !== null) return inTime;
  opening.then(
    (reader) => reader.close(),
    () => undefined,
  );
  throw new LayerStoreError('timed-out', 'The bucket of the repository takes too long');
}

async function openObjects(
  { objects, entities }: PushFactsContext,
  { accountId, owned, entity }: PushFacts,
  waited: boolean,
): Promise<ObjectReader> {
  const now = waited ? await entities.get(repositories, owned.id) : entity;
  const holding = now.state.status === 'open' ? { ...now, state: now.state } : entity;
  return objects.open(committedObjects({ id: owned.id, accountId, owned }, holding));
}
