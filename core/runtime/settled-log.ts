/**
 * The log as everybody but its adapter sees it: an event leaves it only when it is settled (read-leases.ts, rules 5 and
 * 6).
 *
 * Invariants: appends wait here, whoever makes them, and so do reads, subscriptions and the head. What no other
 * process delays costs a comparison.
 */
import type { LogPosition, RecordedEvent } from '../kernel/envelope.ts';
import type { AppendResult, EventStore, SubscribeOptions } from '../ports/event-store.ts';
import { appendInOrder, EventStoreError } from '../ports/event-store.ts';
import type { ReadLeases } from './read-leases.ts';

function unreadable(cause: unknown): EventStoreError {
  return new EventStoreError('log-unavailable', 'The log cannot tell what other nodes have heard of', { cause });
}

export function createSettledLog(events: EventStore, leases: ReadLeases): EventStore {
  const { readPositions } = events;

  /** Null when the position is settled already. A read that cannot wait for that appended nothing. */
  function unsettled(position: LogPosition): Promise<void> | null {
    if (position <= leases.settled()) return null;
    leases.hear(position, null);
    const wait = leases.whenSettled(position);
    return wait?.catch((cause: unknown) => Promise.reject(unreadable(cause))) ?? null;
  }

  async function appended(result: AppendResult | undefined): Promise<void> {
    if (result?.outcome !== 'appended') return;
    leases.hearOwn(result.position, null);
    await leases.whenSettled(result.position);
  }

  async function settled(found: readonly RecordedEvent[]): Promise<readonly RecordedEvent[]> {
    const last = found.reduce((latest, { position }) => (position > latest ? position : latest), leases.settled());
    await unsettled(last);
    return found;
  }

  return {
    async append(request) {
      const result = await events.append(request);
      await appended(result);
      return result;
    },
    async appendInOrder(requests) {
      const results = await appendInOrder(events, requests);
      await appended(results.findLast(({ outcome }) => outcome === 'appended'));
      return results;
    },
    readStream: async (stream, range) => settled(await events.readStream(stream, range)),
    readAll: async (after, limit) => settled(await events.readAll(after, limit)),
    ...(readPositions === undefined
      ? {}
      : { readPositions: async (positions) => settled(await readPositions.call(events, positions)) }),
    subscribe: (options: SubscribeOptions) =>
      events.subscribe({
        ...options,
        onEvents: (found, position, lastRecord) => {
          const wait = unsettled(position);
          if (wait === null) return options.onEvents(found, position, lastRecord);
          return wait.then(() => options.onEvents(found, position, lastRecord));
        },
      }),
    async head() {
      const head = await events.head();
      await unsettled(head);
      return head;
    },
  };
}
