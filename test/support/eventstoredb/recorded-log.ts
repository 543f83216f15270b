/**
 * The log of the protocol server: EventStoreDB's rules for appending and reading, in memory. Nothing is on disk,
 * replicated or scavenged.
 *
 * Invariants, as in EventStoreDB, since the adapter relies on it: positions count bytes, so there are gaps between
 * them; the stream's revision decides whether an append is taken; the log recognises events that are stored at their
 * revisions already by their ids alone, whatever their content; the server's own events are in the same log.
 */

import { randomUUID } from 'node:crypto';

export interface StoredEvent {
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
  /** Both the commit and the prepare position: they are equal for every event that was written over gRPC. */
  readonly position: bigint;
  readonly createdMs: number;
  /** How many events of its append are before it. */
  readonly before: number;
  /** How many events of its append are after it. */
  readonly after: number;
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
const TOMBSTONE = '$streamDeleted';
/** In EventStoreDB it is 2^63 - 1. */
const TOMBSTONE_REVISION = Number.MAX_SAFE_INTEGER;

export interface RecordedLog {
  append(stream: string, expected: Expectation, events: readonly ProposedEvent[]): Appended;
  /** All events, in order. */
  readonly events: readonly StoredEvent[];
  /** The stream's events that are not deleted; null when there is none. */
  stream(name: string): readonly StoredEvent[] | null;
  /** Returns the index of the first event at or after a position. */
  indexOf(position: bigint): number;
  delete(stream: string): void;
  /** Like in EventStoreDB, the tombstone is an event of the stream, and the stream's events stay in the log. */
  tombstone(stream: string, expected: Expectation): Appended;
  isTombstoned(stream: string): boolean;
  /** Drops the last events, as a deposed leader does with events that it never replicated. */
  truncate(length: number): void;
  /** Calls the listener after each append. Returns a function that ends this. */
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
      const stored = history.slice(wanted + 1, wanted + 1 + proposed.length);
      const last = stored.at(-1);
      if (last !== undefined && stored.length === proposed.length && stored.every((e, n) => e.id === proposed[n]?.id)) {
        return { outcome: 'committed', revision: last.revision, position: last.position };
      }
      const wasDeleted = expected === 'no-stream' && deleted.get(stream) === current;
      if (wanted !== current && !wasDeleted) return wrong(current);
    }
    if (expected === 'stream-exists' && current < 0) return wrong(current);
    streams.set(stream, history);
    for (const [index, event] of proposed.entries()) {
      const place = { stream, revision: history.length, position: end };
      const ofAppend = { before: index, after: proposed.length - 1 - index };
      const stored = { ...event, ...place, ...ofAppend, createdMs: Date.now() };
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
    tombstone: (stream, expected) => {
      if (tombstones.has(stream)) return { outcome: 'stream-deleted' };
      const current = (streams.get(stream)?.length ?? 0) - 1;
      if (typeof expected === 'number' && expected !== current) return wrong(current);
      tombstones.add(stream);
      const event = { id: randomUUID(), type: TOMBSTONE, contentType: 'application/octet-stream' };
      const none = { data: new Uint8Array(), metadata: new Uint8Array(), before: 0, after: 0, createdMs: Date.now() };
      const stored = { ...event, ...none, stream, revision: TOMBSTONE_REVISION, position: end };
      end += BigInt(RECORD_BYTES + sizeOf(stored));
      events.push(stored);
      for (const listener of listeners) listener();
      return { outcome: 'committed', revision: current, position: stored.position };
    },
    isTombstoned: (name) => tombstones.has(name),
    truncate: (length) => {
      for (const event of events.splice(length).toReversed()) {
        if (event.type === TOMBSTONE) tombstones.delete(event.stream);
        else streams.get(event.stream)?.pop();
      }
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

/** The event's size as EventStoreDB counts it: with its type name as UTF-16. */
function sizeOf(event: ProposedEvent): number {
  return event.data.length + event.metadata.length + 2 * event.type.length;
}

function sum<T>(items: readonly T[], measure: (item: T) => number): number {
  return items.reduce((total, item) => total + measure(item), 0);
}
