/**
 * Tells a fault from a race: layers leave storage, and accounts their data, while a running server's log is verified.
 *
 * Invariants: an event that takes something away is in the log before it is gone. So what is missing though no event
 * took it away, also none of those that were appended after the log was read, is a fault.
 */
import { readEvent } from '../../kernel/decider.ts';
import type { StreamName } from '../../kernel/envelope.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { readForward } from '../../runtime/read-forward.ts';

/** Returns the ids of the layers that events of a repository's stream let go, from a revision on. */
export async function expiredSince(
  events: Pick<EventStore, 'readStream'>,
  stream: StreamName,
  revision: number,
): Promise<ReadonlySet<string>> {
  const expired = new Set<string>();
  for await (const recorded of readForward(events, stream, revision)) {
    if (recorded.type !== 'LayersExpired') continue;
    const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
    for (const { id } of event.type === 'LayersExpired' ? event.data.layers : []) expired.add(id);
  }
  return expired;
}
