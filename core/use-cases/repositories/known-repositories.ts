/**
 * What the log says of repositories: their names, where their layers are, and which are deleted. Every command of
 * `strata-admin` asks here.
 *
 * Invariants: memory grows with the number of accounts and repositories, not of events. The whole log and the stream of
 * one account say the same of a repository, since all of it stands in its account's stream.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, LOG_START, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { type AccountId, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { LayerPlace } from '../../ports/layer-stores.ts';
import type { BucketsInUse, RepositoryOwners } from '../../ports/repository-lists.ts';
import { readForward } from '../../runtime/read-forward.ts';

export interface KnownRepository {
  readonly id: RepositoryId;
  /** `<username>/<name>`; of a deleted repository its last name. */
  readonly name: string;
  readonly deleted: boolean;
  readonly place: LayerPlace;
  /** Whether its bucket has another place since the deletion. What is there now may be a copy that the owner made. */
  readonly bucketMoved: boolean;
}

export type KnownRepositories = ReadonlyMap<RepositoryId, KnownRepository>;

const PAGE_EVENTS = 1_000;

/** Returns all repositories of the log by id, in the order of their creation. */
export async function readKnownRepositories(events: Pick<EventStore, 'readAll'>): Promise<KnownRepositories> {
  const { known, add } = startKnowing();
  for (let position = LOG_START; ; ) {
    const page = await events.readAll(position, PAGE_EVENTS);
    for (const recorded of page) {
      ({ position } = recorded);
      if (categoryOf(recorded.stream) === accounts.category) add(recorded);
    }
    if (page.length < PAGE_EVENTS) return known;
  }
}

/** Returns the repositories of one account, without reading the rest of the log. */
export async function readRepositoriesOf(
  events: Pick<EventStore, 'readStream'>,
  account: AccountId,
): Promise<KnownRepositories> {
  const { known, add } = startKnowing();
  const stream = streamName(accounts.category, account);
  for await (const recorded of readForward(events, stream, 0, PAGE_EVENTS)) add(recorded);
  return known;
}

/** Takes the events of accounts, those of one account in their order. */
function startKnowing(): { readonly known: KnownRepositories; add(recorded: RecordedEvent): void } {
  const usernames = new Map<string, string>();
  const known = new Map<RepositoryId, KnownRepository>();
  const inBuckets = new Map<string, RepositoryId[]>();
  const add = (recorded: RecordedEvent): void => {
    const account = uuid<AccountId>(entityIdOf(recorded.stream));
    const event = readEvent<AccountEvent>(accounts.kinds, recorded);
    const nameIn = (name: string): string => `${usernames.get(account) ?? account}/${name}`;
    if (event.type === 'AccountCreated') usernames.set(account, event.data.username);
    if (event.type === 'RepositoryCreated') {
      const id = uuid<RepositoryId>(event.data.repository_id);
      const { storage_bucket_id: bucket } = event.data;
      const place = { account, storageBucketId: bucket === null ? null : uuid(bucket) };
      known.set(id, { id, name: nameIn(event.data.name), deleted: false, bucketMoved: false, place });
      if (bucket !== null) inBuckets.set(bucket, [...(inBuckets.get(bucket) ?? []), id]);
    }
    if (event.type === 'RepositoryDeleted' || event.type === 'RepositoryRestored') {
      const repository = known.get(uuid(event.data.repository_id));
      const now = { name: nameIn(event.data.name), deleted: event.type === 'RepositoryDeleted', bucketMoved: false };
      if (repository !== undefined) known.set(repository.id, { ...repository, ...now });
    }
    if (event.type === 'RepositoryRenamed') {
      const repository = known.get(uuid(event.data.repository_id));
      if (repository !== undefined) known.set(repository.id, { ...repository, name: nameIn(event.data.name) });
    }
    if (event.type === 'StorageBucketPlaceChanged') {
      for (const id of inBuckets.get(event.data.bucket_id) ?? []) {
        const repository = known.get(id);
        if (repository?.deleted === true) known.set(id, { ...repository, bucketMoved: true });
      }
    }
  };
  return { known, add };
}

/** What sweeps ask read models for, from the log itself. */
export function ownersAmong(known: KnownRepositories): RepositoryOwners & { readonly readModels: BucketsInUse } {
  const buckets = new Map<string, LayerPlace>();
  for (const { deleted, place } of known.values()) {
    if (!deleted && place.storageBucketId !== null) buckets.set(`${place.account} ${place.storageBucketId}`, place);
  }
  return {
    ownerOf: async (repository) => known.get(repository)?.place.account ?? null,
    readModels: { bucketsInUse: async () => [...buckets.values()] },
  };
}
