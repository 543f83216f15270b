/**
 * The events that this process appended last, for its own subscriptions: they need not read them back from PostgreSQL.
 *
 * Invariants: the events follow one another in the log without a gap, so what is behind a position that they reach
 * is the whole log behind it, as far as this process knows. Their number and size are bounded; who is further back
 * reads the log.
 */
import { categoryOf, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { type OwnSize, ownSize, showCache } from '../../core/kernel/shown-caches.ts';
import { lastRecordOf } from '../../core/runtime/read-mark.ts';
import type { Anchor, Window } from './log-reader.ts';

/**
 * Events of this process that are kept for its subscriptions, and their bytes. Internal: who is further back reads the
 * log.
 */
const EVENTS_MAX = 1_000;
const SIZE_BYTES_MAX = 4 * 1024 * 1024;

export interface AppendedEvents {
  /** The events of whole appends, in log order. */
  readonly events: readonly RecordedEvent[];
  readonly sizeBytes: number;
}

export interface OwnTail {
  /** Takes what one call appended, in log order. */
  add(appends: readonly AppendedEvents[]): void;
  /** What lies behind the anchor; null if this process does not know it. */
  behind(from: Anchor, categories: readonly string[] | null): Window | null;
}

const NONE: AppendedEvents = { events: [], sizeBytes: 0 };

export function createOwnTail(): OwnTail {
  /** Each begins where the one before it ends. */
  let appends: AppendedEvents[] = [];
  let count = 0;
  const size: OwnSize = { taken: 0, max: SIZE_BYTES_MAX };

  const endOf = ({ events }: AppendedEvents): LogPosition | undefined => events.at(-1)?.position;

  function addOne(added: AppendedEvents): void {
    const [start, last] = [startOf(added), appends.at(-1)];
    if (start === undefined) return;
    const end = last === undefined ? undefined : endOf(last);
    // A repeated append finds the events that it already stored.
    if (end !== undefined && start <= end) return;
    if (end === undefined || start !== end + 1n) {
      appends = [];
      count = 0;
      size.taken = 0;
    }
    appends.push(added);
    count += added.events.length;
    size.taken += added.sizeBytes;
    if (isBeyond(1)) forget();
  }

  /**
   * Keeps some half, and the last append if it alone fits: forgetting one each time would cost more than the appends
   * do.
   */
  function forget(): void {
    let first = 0;
    while (first < appends.length && (isBeyond(1) || (isBeyond(2) && first < appends.length - 1))) {
      const append = appends[first];
      first += 1;
      count -= append?.events.length ?? 0;
      size.taken -= append?.sizeBytes ?? 0;
    }
    appends = appends.slice(first);
  }
  const isBeyond = (part: number): boolean => count > EVENTS_MAX / part || size.taken > size.max / part;

  const looks = showCache('own_events', 'memory', size, ownSize);
  return {
    add: (added) => added.forEach(addOne),
    behind: (from, categories) => {
      // The first read of a subscription compares its place with the log.
      if (from.id === null) return null;
      const next = from.position + 1n;
      const index = firstFrom(appends, next);
      if (startOf(appends[index] ?? NONE) !== next) {
        looks.misses += 1;
        return null;
      }
      looks.hits += 1;
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

function startOf({ events }: AppendedEvents): LogPosition | undefined {
  return events[0]?.position;
}

/**
 * The index of the first append that begins at this position or behind it: of a thousand, each subscription asks often.
 */
function firstFrom(appends: readonly AppendedEvents[], position: bigint): number {
  let [low, high] = [0, appends.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const start = startOf(appends[middle] ?? NONE);
    if (start !== undefined && start < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
