/**
 * The events that arrived at the end of the log and that at least one reader there has yet to take.
 *
 * Invariants: between a reader's place and the end no event is missing and none is taken twice; whole appends are
 * put in and whole appends are taken; no reader waits for another; the number of events and of bytes is bounded: beyond
 * a bound, the readers that are furthest behind lose their place. They learn it after they took what had arrived until
 * then. A reader takes what arrived before a failure first, and gets the failure after it.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { batchFrom, type LogEntry } from './log-entries.ts';

/** The events of the buffer, and their bytes. Internal: who is further back reads the log. */
const BUFFER_EVENTS_MAX = 10_000;
const BUFFER_SIZE_BYTES_MAX = 16 * 1024 * 1024;

export interface TailReader {
  /** The reader gets every event behind this position. One that is further back must first read up to it elsewhere. */
  readonly from: LogPosition;
  /**
   * The events behind the position, one batch at most (`batchFrom`); null when the reader lost its place and took all
   * that was left for it. Throws the error of `fail` when no event is left before it.
   */
  take(position: LogPosition): readonly LogEntry[] | null;
  /** Resolves when `take` may return something else, or the reader has left. */
  changed(): Promise<void>;
  leave(): void;
}

interface Cursor {
  /** The number of the next entry to take, counted from the first entry that was ever put in. */
  next: number;
  /**
   * Null until the reader loses its place. Then the entries from its place to the end at that moment, and `next` is an
   * index of this list.
   */
  rest: readonly LogEntry[] | null;
}

export class TailBuffer {
  readonly #cursors = new Set<Cursor>();
  readonly #entries: LogEntry[] = [];
  /** The number of the first entry held, counted from the first entry that was ever put in. */
  #first = 0;
  /** The position of the entry before the first one held. */
  #before: LogPosition;
  #sizeBytes = 0;
  #failure: { readonly error: unknown } | null = null;
  #waking = false;
  #change = Promise.withResolvers<void>();

  /** The first entry that is put in must be the next one behind `start`. */
  constructor(start: LogPosition) {
    this.#before = start;
  }

  /** The number of readers that have not left or lost their place. */
  get readers(): number {
    return this.#cursors.size;
  }

  /** Takes whole appends. */
  put(entries: readonly LogEntry[]): void {
    if (entries.length === 0) return;
    this.#entries.push(...entries);
    for (const { sizeBytes } of entries) this.#sizeBytes += sizeBytes;
    while (this.#isFull()) this.#dropSlowest();
    this.#wakeAll();
  }

  /** A place right behind the position, or at the first event held if that is further on. */
  join(position: LogPosition): TailReader {
    const behind = this.#entries.findIndex((entry) => entry.position > position);
    const cursor: Cursor = { next: this.#first + (behind < 0 ? this.#entries.length : behind), rest: null };
    this.#cursors.add(cursor);
    return {
      from: this.#before,
      take: (reached) => this.#take(cursor, reached),
      changed: () => this.#change.promise,
      leave: () => {
        this.#cursors.delete(cursor);
        this.#trim();
        this.#wakeAll();
      },
    };
  }

  /** Every reader gets the first error that was reported here. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wakeAll();
  }

  #take(cursor: Cursor, position: LogPosition): readonly LogEntry[] | null {
    const { rest } = cursor;
    const source = rest ?? this.#entries;
    let index = cursor.next - (rest === null ? this.#first : 0);
    // Skips what the reader has already read elsewhere.
    while ((source[index]?.position ?? position + 1n) <= position) index += 1;
    const taken = batchFrom(source, index);
    cursor.next = index + taken.length + (rest === null ? this.#first : 0);
    if (rest !== null) return taken.length === 0 ? null : taken;
    this.#trim();
    if (taken.length === 0 && this.#failure !== null) throw this.#failure.error;
    return taken;
  }

  /** Drops the entries that all readers have taken. */
  #trim(): void {
    let next = this.#first + this.#entries.length;
    for (const cursor of this.#cursors) next = Math.min(next, cursor.next);
    for (const { position, sizeBytes } of this.#entries.splice(0, next - this.#first)) {
      this.#before = position;
      this.#sizeBytes -= sizeBytes;
    }
    this.#first = next;
  }

  #isFull(): boolean {
    const { length } = this.#entries;
    return length > BUFFER_EVENTS_MAX || (this.#sizeBytes > BUFFER_SIZE_BYTES_MAX && length > 1);
  }

  #dropSlowest(): void {
    const slowest = Math.min(...[...this.#cursors].map(({ next }) => next));
    for (const cursor of this.#cursors) {
      if (cursor.next > slowest) continue;
      cursor.rest = this.#entries.slice(cursor.next - this.#first);
      cursor.next = 0;
      this.#cursors.delete(cursor);
    }
    this.#trim();
  }

  /** Wakes the readers once for all that arrives in one turn of the event loop: each takes it as one batch. */
  #wakeAll(): void {
    if (this.#waking) return;
    this.#waking = true;
    setImmediate(() => {
      this.#waking = false;
      this.#change.resolve();
      this.#change = Promise.withResolvers();
    });
  }
}
