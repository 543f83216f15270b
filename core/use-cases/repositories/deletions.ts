/**
 * The repositories that an account deleted, each with where it was stored then: what an undeletion can bring back.
 *
 * Invariants: the list, the undeletion and the change of a bucket's place all read the deletions here, from the
 * account's own events. So a repository that the list shows as restorable holds the place that it would come back to.
 */
import { type BoundPlace, boundPlace, lostPlace } from '../../account/buckets/binding.ts';
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { Account } from '../../account/state.ts';
import { readEvent } from '../../kernel/decider.ts';
import { positionBefore, type RecordedEvent, type StreamName, streamName } from '../../kernel/envelope.ts';
import {
  type AccountId,
  plusMs,
  type RepositoryId,
  type StorageBucketId,
  type Timestamp,
  uuid,
} from '../../kernel/ids.ts';
import { DELETED_REPOSITORIES_LISTED_MAX } from '../../kernel/limits.ts';
import type { LostPlace } from '../../kernel/refusal.ts';
import { type AccountLogReader, type EntryFilter, EVERY_ENTRY } from '../../ports/account-log.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Context } from '../../runtime/execute.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { readBack } from '../../runtime/read-back.ts';
import { readForward } from '../../runtime/read-forward.ts';

export interface DeletionsContext extends Context {
  readonly readModels: Pick<AccountLogReader, 'accountLogCaughtUp' | 'logPrefix' | 'entryPlaces'>;
  readonly past: Pick<PastEntities, 'accountAt'>;
  /** How long a deleted repository can be undeleted. */
  readonly retentionMs: number;
}

export interface RemovedRepository {
  /** The entry that the deletion removed from the account's list. */
  readonly owned: OwnedRepository;
  /** Where it was stored at that moment. */
  readonly place: BoundPlace;
}

export interface Deletion extends RemovedRepository {
  readonly deletedAt: Timestamp;
  /** Null: its place is still the account's. */
  readonly lost: LostPlace | null;
}

const DELETED: EntryFilter = { ...EVERY_ENTRY, type: 'RepositoryDeleted' };
/** Events of accounts are small. Internal: the rest is read in further pages. */
const PAGE_EVENTS_MAX = 500;

/**
 * Returns what the last deletion of a repository removed, however long ago; null if the account deleted no such one.
 */
export async function findDeletion(
  context: DeletionsContext,
  account: AccountId,
  repositoryId: RepositoryId,
): Promise<RemovedRepository | null> {
  const { readModels, past } = context;
  const stream = await caughtUp(context, account);
  const { size } = await readModels.logPrefix(account, null);
  const wanted = { from: 0, to: size, limit: 1, newestFirst: true };
  const [last] = await readModels.entryPlaces(account, { ...DELETED, stream, repositoryId }, wanted);
  if (last === undefined) return null;
  return removedFrom(await past.accountAt(account, positionBefore(last.position)), repositoryId);
}

/**
 * Returns what the account had of a deleted repository when its stream was closed; null if it had no such one. The
 * account forgets a deleted repository, and has it at the last event of its stream before layers were let go.
 */
export async function removedRepository(
  { events, past }: Pick<DeletionsContext, 'events' | 'past'>,
  of: { readonly account: AccountId; readonly repository: RepositoryId; readonly revision: number },
): Promise<RemovedRepository | null> {
  const closing = await lastBeforeExpiry(events, streamName(repositories.category, of.repository), of.revision);
  if (closing === null) return null;
  return removedFrom(await past.accountAt(of.account, closing.position), of.repository);
}

/** Returns the last event of a repository's stream, up to the revision, that let no layers go. */
export async function lastBeforeExpiry(
  events: DeletionsContext['events'],
  stream: StreamName,
  revision: number,
): Promise<RecordedEvent | null> {
  for await (const recorded of readBack(events, stream, revision)) {
    if (recorded.type !== 'LayersExpired') return recorded;
  }
  return null;
}

/**
 * Returns the deletions within the retention, the newest first, but those that were undone. It folds what the account
 * did within the retention once, so its cost does not depend on the number of deletions.
 */
export async function deletionsWithinRetention(
  context: DeletionsContext,
  account: AccountId,
): Promise<readonly Deletion[]> {
  const { readModels, past, events, clock, retentionMs } = context;
  const stream = await caughtUp(context, account);
  const since = plusMs(clock.now(), -retentionMs);
  const { size } = await readModels.logPrefix(account, null);
  const wanted = { from: 0, to: size, limit: 1 };
  const [first] = await readModels.entryPlaces(account, { ...DELETED, stream, since }, wanted);
  if (first === undefined) return [];
  let state = await past.accountAt(account, positionBefore(first.position));
  const removed = new Map<RepositoryId, Omit<Deletion, 'lost'>>();
  for await (const recorded of readForward(events, stream, first.revision, PAGE_EVENTS_MAX)) {
    state = foldDeletions(state, recorded, removed);
  }
  const deletions = [...removed.values()].toReversed();
  return deletions.map((deletion) => ({ ...deletion, lost: lostPlace(state, deletion.place) }));
}

/**
 * Returns the deleted repositories that can come back to the place where a bucket is now; of many, the last deleted.
 */
export async function deletedInBucket(
  context: DeletionsContext,
  account: AccountId,
  bucket: StorageBucketId,
): Promise<readonly OwnedRepository[]> {
  const found: OwnedRepository[] = [];
  for (const { owned, lost } of await deletionsWithinRetention(context, account)) {
    if (owned.storageBucketId !== bucket || lost !== null) continue;
    const { state } = await context.entities.get(repositories, owned.id);
    // Memory that is behind the log shows it open. In doubt it holds the place.
    if (state.status === 'closed' && state.expired) continue;
    found.push(owned);
    if (found.length === DELETED_REPOSITORIES_LISTED_MAX) break;
  }
  return found;
}

async function caughtUp({ entities, readModels }: DeletionsContext, account: AccountId): Promise<StreamName> {
  const { position } = await entities.get(accounts, account);
  await readModels.accountLogCaughtUp(position);
  return streamName(accounts.category, account);
}

/** Returns the account after the event, and keeps what it deletes or brings back. */
function foldDeletions(
  before: Account,
  recorded: RecordedEvent,
  removed: Map<RepositoryId, Omit<Deletion, 'lost'>>,
): Account {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type === 'RepositoryDeleted') {
    const id = uuid<RepositoryId>(event.data.repository_id);
    const entry = removedFrom(before, id);
    removed.delete(id);
    if (entry !== null) removed.set(id, { ...entry, deletedAt: recorded.occurredAt });
  }
  if (event.type === 'RepositoryRestored') removed.delete(uuid<RepositoryId>(event.data.repository_id));
  return accounts.evolve(before, event, recorded.occurredAt);
}

function removedFrom(before: Account, id: RepositoryId): RemovedRepository | null {
  const owned = 'repositories' in before ? before.repositories.get(id) : undefined;
  return owned === undefined ? null : { owned, place: boundPlace(before, owned) };
}
