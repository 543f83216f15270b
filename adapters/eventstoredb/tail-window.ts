/**
 * What came at the end of the log and was not yet taken by all who read there.
 *
 * Must stay true: between a reader's place and the end nothing is missing and nothing comes twice; nobody waits for
 * anybody; it is bounded, by events and by bytes: beyond, the reader that is furthest behind loses its place, and is
 * told when it has taken what came until then. What came before a failure is taken before the failure.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { BATCH_EVENTS_MAX, type Passed } from './passed.ts';

const WINDOW_EVENTS_MAX = 10_000;
const WINDOW_SIZE_BYTES_MAX = 16 * 1024 * 1024;

export interface TailReader {
  /** Every event behind this position comes here: who stands further back reads up to it elsewhere. */
  readonly from: LogPosition;
  /**
   * What came behind the position, `BATCH_EVENTS_MAX` at most; null when the place was lost and nothing is left.
   * Throws what `fail` was given, once nothing is left.
   */
  take(position: LogPosition): readonly Passed[] | null;
  /** Resolves when `take` may have something else to say, or the reader has left. */
  arrived(): Promise<void>;
  leave(): void;
}

export interface TailWindow {
  /** The position of the last event that came. */
  end(): LogPosition;
  /** How many hold a place. */
  readers(): number;
  put(passed: Passed): void;
  /** A place right behind the position, if that is not gone already; else as far back as it goes. */
  enter(position: LogPosition): TailReader;
  fail(error: unknown): void;
}

interface Place {
  /** The number of the next event to take. */
  next: number;
  /** Of a place that was lost: what came until then; `next` is an index of it. */
  rest: readonly Passed[] | null;
}

/** `start` is where the first event comes behind. */
export function createTailWindow(start: LogPosition): TailWindow {
  const places = new Set<Place>();
  const held: Passed[] = [];
  /** The number of the first event held, and the position of the one before it. */
  let first = 0;
  let before = start;
  let sizeBytes = 0;
  let failure: { readonly error: unknown } | null = null;
  let waking = false;
  let arrival = Promise.withResolvers<void>();

  const end = (): LogPosition => held.at(-1)?.position ?? before;

  /** Lets go of what everybody has taken. */
  function trim(): void {
    let next = first + held.length;
    for (const place of places) next = Math.min(next, place.next);
    for (const { position, sizeBytes: size } of held.splice(0, next - first)) {
      before = position;
      sizeBytes -= size;
    }
    first = next;
  }

  function loseSlowest(): void {
    const slowest = Math.min(...[...places].map(({ next }) => next));
    for (const place of places) {
      if (place.next > slowest) continue;
      place.rest = held.slice(place.next - first);
      place.next = 0;
      places.delete(place);
    }
    trim();
  }

  function isFull(): boolean {
    return held.length > WINDOW_EVENTS_MAX || (sizeBytes > WINDOW_SIZE_BYTES_MAX && held.length > 1);
  }

  /** Once for all that comes in a turn: each then takes it as one batch. */
  function wakeAll(): void {
    if (waking) return;
    waking = true;
    setImmediate(() => {
      waking = false;
      arrival.resolve();
      arrival = Promise.withResolvers();
    });
  }

  function take(place: Place, position: LogPosition): readonly Passed[] | null {
    const { rest } = place;
    const source = rest ?? held;
    let index = place.next - (rest === null ? first : 0);
    // Who read further elsewhere has seen these.
    while ((source[index]?.position ?? position + 1n) <= position) index += 1;
    const taken = source.slice(index, index + BATCH_EVENTS_MAX);
    place.next = index + taken.length + (rest === null ? first : 0);
    if (rest !== null) return taken.length === 0 ? null : taken;
    trim();
    if (taken.length === 0 && failure !== null) throw failure.error;
    return taken;
  }

  return {
    end,
    readers: () => places.size,
    put: (passed) => {
      held.push(passed);
      sizeBytes += passed.sizeBytes;
      while (isFull()) loseSlowest();
      wakeAll();
    },
    enter: (position) => {
      const behind = held.findIndex((passed) => passed.position > position);
      const place: Place = { next: first + (behind < 0 ? held.length : behind), rest: null };
      places.add(place);
      return {
        from: before,
        take: (reached) => take(place, reached),
        arrived: () => arrival.promise,
        leave: () => {
          places.delete(place);
          trim();
          wakeAll();
        },
      };
    },
    fail: (error) => {
      failure ??= { error };
      wakeAll();
    },
  };
}
