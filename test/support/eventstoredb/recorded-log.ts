/**
 * The log behind the protocol server: EventStoreDB's rules for appending and reading, in memory.
 *
 * It is a stand-in, not EventStoreDB: nothing is on disk, replicated or scavenged. What it must have in common, since
 * the adapter relies on it: positions are bytes, with gaps; an append is decided by the stream's revision; events that
 * are already at their place are found by their ids alone, whatever their content; system events share the log.
 */

export interface StoredEvent {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Commit and prepare position alike: so they are for every event that was written over gRPC. */
  readonly position: bigint;
  readonly createdMs: number;
}

export type ProposedEvent = Pick<StoredEvent, 'id' | 'type' | 'contentType' | 'data' | 'metadata'>;

export type Expectation = number | 'any' | 'no-stream' | 'stream-exists';

export type Appended =
  | { readonly outcome: 'committed'; readonly revision: number; readonly position: bigint }
  | { readonly outcome: 'wrong-expected-version'; readonly current: number | null }
  | { readonly outcome: 'stream-deleted' }
  | { readonly outcome: 'too-large' };

export const APPEND_BYTES_MAX = 1024 * 1024;
const RECORD_BYTES = 64;

export interface RecordedLog {
  append(stream: string, expected: Expectation, events: readonly ProposedEvent[]): Appended;
  /** All events, in order. */
  readonly events: readonly StoredEvent[];
  /** The stream's events that can be read; null when there is none. */
  stream(name: string): readonly StoredEvent[] | null;
  /** The index of the first event at or behind a position. */
  indexOf(position: bigint): number;
  delete(stream: string): void;
  tombstone(stream: string): void;
  /** As a node that was the leader does when it joins another: its last events were never anybody else's. */
  truncate(length: number): void;
  /** Called after each append; answers how to stop that. */
  onAppended(listener: () => void): () => void;
}

export function createRecordedLog(): RecordedLog {
  const events: StoredEvent[] = [];
  const streams = new Map<string, StoredEvent[]>();
  const deleted = new Map<string, number>();
  const tombstones = new Set<string>();
  const listeners = new Set<() => void>();
  let end = 0n;

  function append(stream: string, expected: Expectation, proposed: readonly ProposedEvent[]): Appended {
    if (tombstones.has(stream)) return { outcome: 'stream-deleted' };
    if (sum(proposed, sizeOf) > APPEND_BYTES_MAX) return { outcome: 'too-large' };
    const history = streams.get(stream) ?? [];
    const current = history.length - 1;
    if (typeof expected === 'number' || expected === 'no-stream') {
      const wanted = expected === 'no-stream' ? -1 : expected;
      const there = history.slice(wanted + 1, wanted + 1 + proposed.length);
      const last = there.at(-1);
      if (last !== undefined && there.length === proposed.length && there.every((e, n) => e.id === proposed[n]?.id)) {
        return { outcome: 'committed', revision: last.revision, position: last.position };
      }
      const wasDeleted = expected === 'no-stream' && deleted.get(stream) === current;
      if (wanted !== current && !wasDeleted) return wrong(current);
    }
    if (expected === 'stream-exists' && current < 0) return wrong(current);
    streams.set(stream, history);
    for (const event of proposed) {
      const stored = { ...event, stream, revision: history.length, position: end, createdMs: Date.now() };
      end += BigInt(RECORD_BYTES + sizeOf(event));
      history.push(stored);
      events.push(stored);
    }
    for (const listener of listeners) listener();
    const last = history.at(-1);
    return { outcome: 'committed', revision: history.length - 1, position: last?.position ?? 0n };
  }

  function indexOf(position: bigint): number {
    let [low, high] = [0, events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((events[middle]?.position ?? 0n) < position) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    append,
    events,
    stream: (name) => {
      const history = streams.get(name)?.slice((deleted.get(name) ?? -1) + 1) ?? [];
      return history.length === 0 || tombstones.has(name) ? null : history;
    },
    indexOf,
    delete: (name) => {
      const history = streams.get(name);
      if (history !== undefined) deleted.set(name, history.length - 1);
    },
    tombstone: (name) => void tombstones.add(name),
    truncate: (length) => {
      for (const event of events.splice(length).toReversed()) streams.get(event.stream)?.pop();
      const last = events.at(-1);
      end = last === undefined ? 0n : last.position + BigInt(RECORD_BYTES + sizeOf(last));
    },
    onAppended: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function wrong(current: number): Appended {
  return { outcome: 'wrong-expected-version', current: current < 0 ? null : current };
}

/** As EventStoreDB counts it: type names are UTF-16. */
function sizeOf(event: ProposedEvent): number {
  return event.data.length + event.metadata.length + 2 * event.type.length;
}

function sum<T>(items: readonly T[], measure: (item: T) => number): number {
  return items.reduce((total, item) => total + measure(item), 0);
}
