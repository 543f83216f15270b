/**
 * One stream of the log's end for all subscriptions that stand there: each event crosses the wire once a process.
 *
 * Must stay true: at most one stream is open; it is open as long as somebody reads at the end; it never waits for a
 * reader (tail-window.ts). A break ends it for everyone, and everyone begins anew from where it was itself. A stream
 * that the server has forgotten looks like a quiet one: so the head is looked at whenever nothing has come for a time.
 */
import { START } from '@eventstore/db-client';
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { Log } from '../../core/ports/log.ts';
import { positionOf, toEsdbPosition } from './event-form.ts';
import { NoAnswerError } from './failures.ts';
import { toPassed } from './passed.ts';
import type { Session } from './sessions.ts';
import { createTailWindow, type TailReader, type TailWindow } from './tail-window.ts';

/** The quiet span is waited in parts, of which one must be enough after a hint, and for what is on its way. */
const QUIET_PARTS = 10;

export interface SharedTail {
  /** A place at the log's end for one that has read it to the position. Leaving it is the caller's to do. */
  enter(session: Session, position: LogPosition): TailReader;
  /** A hint that newer events exist. */
  pull(): void;
}

export interface SharedTailOptions {
  /** The head, shared with everyone who asks at the moment. */
  readonly head: () => Promise<LogPosition>;
  readonly log: Log;
  /** How long nothing may come before the head is looked at; after a hint a tenth of it. */
  readonly quietMs: number;
}

interface Tail {
  readonly window: TailWindow;
  readonly ended: AbortSignal;
  /** Ends it when nobody reads there any more. */
  leaveIfDeserted(): void;
  pull(): void;
}

export function createSharedTail(options: SharedTailOptions): SharedTail {
  let current: Tail | null = null;

  return {
    enter: (session, position) => {
      if (current === null || current.ended.aborted) current = openTail(options, session, position);
      const { window, leaveIfDeserted } = current;
      const reader = window.enter(position);
      const leave = (): void => {
        reader.leave();
        leaveIfDeserted();
      };
      return { ...reader, leave };
    },
    pull: () => current?.pull(),
  };
}

/** Opens a stream of everything behind the position. */
function openTail(options: SharedTailOptions, session: Session, position: LogPosition): Tail {
  const { head, log, quietMs } = options;
  const window = createTailWindow(position);
  const over = new AbortController();
  let hinted = false;

  function end(why: unknown): void {
    if (over.signal.aborted) return;
    over.abort();
    window.fail(why);
  }

  async function receive(): Promise<void> {
    const fromPosition = position === LOG_START ? START : toEsdbPosition(position);
    const stream = session.client.subscribeToAll({ fromPosition, requiresLeader: true });
    // One that comes after the iteration has ended would be thrown where nobody can catch it.
    stream.on('error', () => undefined);
    const stop = (): void => {
      stream.unsubscribe().catch(() => undefined);
      stream.destroy();
    };
    over.signal.addEventListener('abort', stop);
    for await (const { event } of stream) {
      if (over.signal.aborted) return;
      if (event === undefined) continue;
      // Nothing comes twice, wherever the server begins.
      if (positionOf(event) <= window.end()) continue;
      const passed = toPassed(event, log);
      window.put(passed);
      leaveIfDeserted();
    }
    throw new NoAnswerError('EventStoreDB ended a subscription');
  }

  /** Ends when the server has more and does not send it. */
  async function watch(): Promise<void> {
    let quietParts = 0;
    while (!over.signal.aborted) {
      quietParts = (await somethingComes()) ? 0 : quietParts + 1;
      if (quietParts < (hinted ? 1 : QUIET_PARTS)) continue;
      hinted = false;
      quietParts = 0;
      // What is beyond may be on its way.
      if ((await currentHead()) <= window.end() || (await somethingComes())) continue;
      throw new NoAnswerError('EventStoreDB has events behind a subscription and does not send them');
    }
  }

  /** Whether it does within a part of the quiet span. */
  function somethingComes(): Promise<boolean> {
    const before = window.end();
    return new Promise((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        over.signal.removeEventListener('abort', finish);
        resolve(window.end() > before);
      };
      const timer = setTimeout(finish, quietMs / QUIET_PARTS);
      over.signal.addEventListener('abort', finish);
      if (over.signal.aborted) finish();
    });
  }

  async function currentHead(): Promise<LogPosition> {
    try {
      return await head();
    } catch (cause) {
      throw new NoAnswerError('The head cannot be read', { cause });
    }
  }

  function leaveIfDeserted(): void {
    if (window.readers() === 0) end(new NoAnswerError('Nobody reads at the end of the log'));
  }

  const cut = (): void => end(new NoAnswerError('The connection to EventStoreDB was given up'));
  session.ended.addEventListener('abort', cut);
  over.signal.addEventListener('abort', () => session.ended.removeEventListener('abort', cut));
  receive().catch(end);
  watch().catch(end);
  if (session.ended.aborted) cut();
  return {
    window,
    ended: over.signal,
    leaveIfDeserted,
    pull: () => {
      hinted = true;
    },
  };
}
