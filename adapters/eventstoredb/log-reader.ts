/**
 * Reads of EventStoreDB.
 *
 * Must stay true: every read asks for the leader, whose answers are as new as the log (but for the moment in which a
 * deposed one has not stepped down); a read whose server falls silent ends by itself.
 */
import {
  BACKWARDS,
  END,
  FORWARDS,
  type AllStreamResolvedEvent,
  type ResolvedEvent,
  START,
  StreamNotFoundError,
  type StreamingRead,
} from '@eventstore/db-client';
import { LOG_START, type LogPosition, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import { EventStoreError, type ExpectedRevision, type ReadStreamOptions } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { positionOf, type ReceivedEvent, toEsdbPosition, toRecorded } from './event-form.ts';
import { NoAnswerError } from './failures.ts';
import { BATCH_EVENTS_MAX, type Passed, toPassed } from './passed.ts';
import type { Session, Sessions } from './sessions.ts';

const PAGE_EVENTS = 1_000;
/** A window holds this much data, or a little more by its last event. */
const WINDOW_SIZE_BYTES_MAX = 16 * 1024 * 1024;

/** What stands behind a position. */
export interface Window {
  /** At most `BATCH_EVENTS_MAX`. */
  readonly passed: readonly Passed[];
  /** False when there may be more right behind it. */
  readonly reachedEnd: boolean;
}

export interface LogReader {
  readStream(session: Session, stream: StreamName, options: ReadStreamOptions): Promise<readonly RecordedEvent[]>;
  readAll(session: Session, after: LogPosition, limit: number): Promise<readonly RecordedEvent[]>;
  /** For a subscription: the server's own events included. Ends with the signal, by an error. */
  readWindow(session: Session, after: LogPosition, signal: AbortSignal): Promise<Window>;
  /** The position of the last event, the server's own included. */
  head(session: Session): Promise<LogPosition>;
  /** The stream's last revision. */
  revisionOf(session: Session, stream: StreamName): Promise<ExpectedRevision>;
}

export interface LogReaderOptions {
  readonly sessions: Sessions;
  readonly log: Log;
  /** How long a read may bring nothing. */
  readonly silenceMs: number;
}

export function createLogReader({ sessions, log, silenceMs }: LogReaderOptions): LogReader {
  /** Hands the events of a read over, until one is answered with false; whether the read came to its end. */
  async function walk(
    session: Session,
    open: (client: Session['client']) => StreamingRead<ResolvedEvent> | StreamingRead<AllStreamResolvedEvent>,
    wantsMore: (event: ReceivedEvent) => boolean,
    signal: AbortSignal = session.ended,
  ): Promise<boolean> {
    const startedMs = performance.now();
    const read = open(session.client);
    // An error that comes after the iteration has ended would be thrown where nobody can catch it.
    read.on('error', () => undefined);
    const end = (why: string) => () => read.destroy(new NoAnswerError(why));
    const silent = end(`EventStoreDB was silent for ${silenceMs} ms`);
    const cut = end('The connection to EventStoreDB was given up');
    let timer = setTimeout(silent, silenceMs);
    const signals = [session.ended, signal];
    for (const ended of signals) ended.addEventListener('abort', cut);
    if (signals.some(({ aborted }) => aborted)) cut();
    try {
      let more = true;
      for await (const { event } of read) {
        clearTimeout(timer);
        timer = setTimeout(silent, silenceMs);
        more = event === undefined || wantsMore(event);
        if (!more) break;
      }
      session.heardMs = performance.now();
      return more;
    } catch (error) {
      if (error instanceof StreamNotFoundError) return true;
      // Nothing else was heard of this client meanwhile either: it is dead.
      if (error instanceof NoAnswerError && !signal.aborted && session.heardMs < startedMs)
        sessions.discard(session, error.message);
      throw error;
    } finally {
      clearTimeout(timer);
      for (const ended of signals) ended.removeEventListener('abort', cut);
      read.cancel().catch(() => undefined);
    }
  }

  /** The events of a read. */
  async function collect(session: Session, open: Parameters<typeof walk>[1]): Promise<readonly ReceivedEvent[]> {
    const events: ReceivedEvent[] = [];
    await walk(session, open, (event) => events.push(event) > 0);
    return events;
  }

  function recordedIn(event: ReceivedEvent): RecordedEvent {
    const recorded = toRecorded(event);
    if (recorded !== null) return recorded;
    const place = `${event.streamId} revision ${event.revision}`;
    throw new EventStoreError('invalid-event', `${place} was not written by Strata`);
  }

  const readStream: LogReader['readStream'] = async (session, stream, { direction, from, limit }) => {
    const backwards = direction === 'backwards';
    const common = { direction: backwards ? BACKWARDS : FORWARDS, maxCount: limit, requiresLeader: true } as const;
    const fromRevision = from === undefined ? (backwards ? END : START) : BigInt(from);
    const events = await collect(session, (client) => client.readStream(stream, { ...common, fromRevision }));
    if (events.length === 0 && backwards && from !== undefined) {
      // From beyond its end: what is asked for then is its last events.
      const last = await revisionOf(session, stream);
      if (last === 'none' || last >= from) return [];
      return readStream(session, stream, { direction, limit });
    }
    return events.map(recordedIn);
  };

  async function revisionOf(session: Session, stream: StreamName): Promise<ExpectedRevision> {
    const options = { direction: BACKWARDS, fromRevision: END, maxCount: 1, requiresLeader: true } as const;
    const [last] = await collect(session, (client) => client.readStream(stream, options));
    return last === undefined ? 'none' : Number(last.revision);
  }

  /** A page of everything from a position on, the event there included. */
  function page(from: LogPosition, maxCount: number): Parameters<typeof walk>[1] {
    const fromPosition = from === LOG_START ? START : toEsdbPosition(from);
    return (client) => client.readAll({ direction: FORWARDS, fromPosition, maxCount, requiresLeader: true });
  }

  return {
    readStream,
    revisionOf,
    readAll: async (session, after, limit) => {
      const found: RecordedEvent[] = [];
      let position = after;
      while (found.length < limit) {
        // One more for the event at the position, which was seen.
        const wanted = Math.min(limit - found.length, PAGE_EVENTS) + 1;
        const events = await collect(session, page(position, wanted));
        for (const event of events) {
          const at = positionOf(event);
          if (at <= position || found.length === limit) continue;
          position = at;
          const recorded = toPassed(event, log).event;
          if (recorded !== null) found.push(recorded);
        }
        if (events.length < wanted) break;
      }
      return found;
    },
    readWindow: async (session, after, signal) => {
      const passed: Passed[] = [];
      let seen = 0;
      let sizeBytes = 0;
      const wantsMore = (event: ReceivedEvent): boolean => {
        seen += 1;
        if (positionOf(event) <= after) return true;
        const next = toPassed(event, log);
        sizeBytes += next.sizeBytes;
        return passed.push(next) < BATCH_EVENTS_MAX && sizeBytes < WINDOW_SIZE_BYTES_MAX;
      };
      const ended = await walk(session, page(after, BATCH_EVENTS_MAX + 1), wantsMore, signal);
      return { passed, reachedEnd: ended && seen <= BATCH_EVENTS_MAX };
    },
    head: async (session) => {
      const options = { direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true } as const;
      const [last] = await collect(session, (client) => client.readAll(options));
      return last === undefined ? LOG_START : positionOf(last);
    },
  };
}
