/**
 * The events that this process appended last, for its own subscriptions: they need not read them back from PostgreSQL.
 *
 * Must stay true: the events follow one another in the log without a gap, so what is behind a position that they reach
 * is the whole log behind it, as far as this process knows. Their number and size are bounded; who is further back
 * reads the log.
 */
import { categoryOf, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { lastRecordOf } from '../../core/runtime/read-mark.ts';
import type { Anchor, Window } from './log-reader.ts';

const EVENTS_MAX = 1_000;
const SIZE_BYTES_MAX = 4 * 1024 * 1024;

export interface AppendedEvents {
  /** Of whole appends, in log order. */
  readonly events: readonly RecordedEvent[];
  readonly sizeBytes: number;
}

export interface OwnTail {
  /** Takes what one call appended, in log order. */
  add(appends: readonly AppendedEvents[]): void;
  /** What lies behind the anchor; null if this process does not know it. */
  behind(from: Anchor, categories: readonly string[] | null): Window | null;
}

export function createOwnTail(): OwnTail {
  let appends: readonly AppendedEvents[] = [];

  const startOf = ({ events }: AppendedEvents): LogPosition | undefined => events[0]?.position;
  const endOf = ({ events }: AppendedEvents): LogPosition | undefined => events.at(-1)?.position;

  function addOne(added: AppendedEvents): void {
    const [start, last] = [startOf(added), appends.at(-1)];
    if (start === undefined) return;
    const end = last === undefined ? undefined : endOf(last);
    // A repeated append finds the events that it already stored.
    if (end !== undefined && start <= end) return;
    appends = end === undefined || start !== end + 1n ? [added] : [...appends, added];
    let [count, sizeBytes] = [0, 0];
    const first = appends.findLastIndex(({ events, sizeBytes: size }) => {
      count += events.length;
      sizeBytes += size;
      return count > EVENTS_MAX || sizeBytes > SIZE_BYTES_MAX;
    });
    if (first >= 0) appends = appends.slice(first + 1);
  }

  return {
    add: (added) => added.forEach(addOne),
    behind: (from, categories) => {
      // The first read of a subscription compares its place with the log.
      if (from.id === null) return null;
      const index = appends.findIndex((append) => startOf(append) === from.position + 1n);
      if (index < 0) return null;
      const events = appends.slice(index).flatMap((append) => append.events);
      const last = events.at(-1);
      if (last === undefined) return null;
      const wanted = categories === null ? null : new Set(categories);
      return {
        events: wanted === null ? events : events.filter(({ stream }) => wanted.has(categoryOf(stream))),
        end: { position: last.position, id: last.id },
        lastRecord: lastRecordOf(events),
        reachedEnd: true,
        isOwn: true,
        diverged: false,
      };
    },
  };
}
