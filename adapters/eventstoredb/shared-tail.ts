/**
 * The server's stream of new events, shared by all subscriptions that have read to the end of the log: each event
 * crosses the wire once for the whole process.
 *
 * Invariants: at most one stream is open; it stays open as long as a subscription reads at the end; it never waits
 * for a reader (tail-buffer.ts). The server sends an append's events one by one; no reader sees them before the last
 * one has arrived. When the stream breaks it ends for all readers, and each starts again from its own position. A
 * stream that the server has forgotten looks like a quiet one, so the head is read whenever nothing arrives for a time.
 */
import { START } from '@eventstore/db-client';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { Log } from '../../core/ports/log.ts';
import { positionOf, toEsdbPosition } from './event-form.ts';
import { NoAnswerError } from './failures.ts';
import { createAppendAssembler, toLogEntry } from './log-entries.ts';
import type { Session } from './sessions.ts';
import { TailBuffer, type TailReader } from './tail-buffer.ts';

/**
 * The quiet time is waited in this many parts. After a hint of newer events one quiet part is enough to read the head,
 * and one more part is waited for events that are on their way.
 */
const QUIET_PARTS = 10;

export interface SharedTail {
  /** A place at the end of the log for a reader that has read to the position. The caller must leave it. */
  join(session: Session, position: LogPosition): TailReader;
  /** A hint that newer events exist. */
  pull(): void;
}

export interface SharedTailOptions {
  /** The head; calls at the same moment share one read. */
  readonly head: () => Promise<LogPosition>;
  readonly log: Log;
  /** How long nothing may arrive before the head is read; after a hint, a tenth of it. */
  readonly quietMs: number;
}

export function createSharedTail(options: SharedTailOptions): SharedTail {
  let current: TailStream | null = null;

  return {
    join: (session, position) => {
      if (current === null || current.ended.aborted) current = openTailStream(options, session, position);
      const stream = current;
      const { from, take, changed, leave } = stream.buffer.join(position);
      const leaveStream = (): void => {
        leave();
        stream.endIfUnread();
      };
      return { from, take, changed, leave: leaveStream };
    },
    pull: () => current?.pull(),
  };
}

/** Opens a stream of everything behind the position; it ends with the session at the latest. */
function openTailStream(options: SharedTailOptions, session: Session, position: LogPosition): TailStream {
  const stream = new TailStream(options, position);
  const cut = (): void => stream.end(new NoAnswerError('The connection to EventStoreDB was given up'));
  session.ended.addEventListener('abort', cut);
  stream.ended.addEventListener('abort', () => session.ended.removeEventListener('abort', cut));
  const end = (why: unknown): void => stream.end(why);
  stream.receive(session).catch(end);
  stream.watch().catch(end);
  if (session.ended.aborted) cut();
  return stream;
}

class TailStream {
  /** The events that were received, for the readers to take. */
  readonly buffer: TailBuffer;
  readonly #options: SharedTailOptions;
  readonly #ending = new AbortController();
  readonly #appends = createAppendAssembler();
  /** The position of the last event that arrived. Inside an append it is ahead of what the buffer holds. */
  #received: LogPosition;
  #hinted = false;

  constructor(options: SharedTailOptions, position: LogPosition) {
    this.buffer = new TailBuffer(position);
    this.#options = options;
    this.#received = position;
  }

  /** Aborted when the stream has ended. */
  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  /** A hint that newer events exist. */
  pull(): void {
    this.#hinted = true;
  }

  /** Ends the stream for all readers, who get the reason as an error. */
  end(why: unknown): void {
    if (this.ended.aborted) return;
    this.#ending.abort();
    this.buffer.fail(why);
  }

  endIfUnread(): void {
    if (this.buffer.readers === 0) this.end(new NoAnswerError('Nobody reads at the end of the log'));
  }

  /** Puts what the server sends into the buffer. Resolves after `end`; rejects when the server ends the stream. */
  async receive(session: Session): Promise<void> {
    const { buffer } = this;
    const fromPosition = this.#received === LOG_START ? START : toEsdbPosition(this.#received);
    const stream = session.client.subscribeToAll({ fromPosition, requiresLeader: true });
    // Without a listener, an error after the end of the iteration would be thrown where nobody can catch it.
    stream.on('error', () => undefined);
    this.ended.addEventListener('abort', () => {
      stream.unsubscribe().catch(() => undefined);
      stream.destroy();
    });
    for await (const { event } of stream) {
      if (this.ended.aborted) return;
      if (event === undefined) continue;
      // Skips events that were received before, wherever the server begins.
      if (positionOf(event) <= this.#received) continue;
      const entry = toLogEntry(event, this.#options.log);
      this.#received = entry.position;
      buffer.put(this.#appends.add(entry));
      this.endIfUnread();
    }
    throw new NoAnswerError('EventStoreDB ended a subscription');
  }

  /** Rejects when the server has more events and does not send them. */
  async watch(): Promise<void> {
    let quietParts = 0;
    while (!this.ended.aborted) {
      quietParts = (await this.#somethingArrives()) ? 0 : quietParts + 1;
      if (quietParts < (this.#hinted ? 1 : QUIET_PARTS)) continue;
      this.#hinted = false;
      quietParts = 0;
      // Events beyond the last received one may be on their way.
      if ((await this.#head()) <= this.#received || (await this.#somethingArrives())) continue;
      throw new NoAnswerError('EventStoreDB has events behind a subscription and does not send them');
    }
  }

  /** Resolves after one part of the quiet time, or when the stream ends: true if an event has arrived. */
  #somethingArrives(): Promise<boolean> {
    const before = this.#received;
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.ended.removeEventListener('abort', finish);
        resolve(this.#received > before);
      };
      const timer = setTimeout(finish, this.#options.quietMs / QUIET_PARTS);
      this.ended.addEventListener('abort', finish);
      if (this.ended.aborted) finish();
    });
  }

  async #head(): Promise<LogPosition> {
    try {
      return await this.#options.head();
    } catch (cause) {
      throw new NoAnswerError('The head cannot be read', { cause });
    }
  }
}
