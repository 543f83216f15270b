/** The layers of an account that must be in a store by the log. */
import { readEvent } from '../../kernel/decider.ts';
import { type StreamName, streamName } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { type RecordedLayer, type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { layersStoredBy } from '../../repository/layers.ts';
import { readForward } from '../../runtime/read-forward.ts';
import { type KnownRepository, readRepositoriesOf } from '../repositories/known-repositories.ts';

type Streams = Pick<EventStore, 'readStream'>;

export function isInBucket({ place }: KnownRepository): boolean {
  return place.storageBucketId !== null;
}

/**
 * Returns the repositories of an account whose layers must be there, in the order of their ids. What a bucket of a user
 * holds of a deleted repository is its owner's matter.
 */
export async function repositoriesInStores(events: Streams, account: AccountId): Promise<readonly KnownRepository[]> {
  const known = [...(await readRepositoriesOf(events, account)).values()];
  const kept = known.filter((repository) => !(repository.deleted && isInBucket(repository)));
  return kept.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** What must be in a repository's store. */
export interface NamedLayers {
  readonly stream: StreamName;
  /** The last revision of the stream that was read; -1 for a stream without events. */
  readonly revision: number;
  /** Those that no event let go, the smallest key first. */
  readonly layers: readonly RecordedLayer[];
}

export async function namedLayers(events: Streams, { id }: KnownRepository): Promise<NamedLayers> {
  const stream = streamName('repository', id);
  const named = new Map<string, RecordedLayer>();
  let revision = -1;
  for await (const recorded of readForward(events, stream, 0)) {
    const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
    for (const layer of layersStoredBy(event)) named.set(layer.id, layer);
    for (const { id: gone } of event.type === 'LayersExpired' ? event.data.layers : []) named.delete(gone);
    ({ revision } = recorded);
  }
  return { stream, revision, layers: [...named.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1)) };
}
