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
import { isSystemStream, positionOf, type ReceivedEvent, toEsdbPosition, toRecorded } from './event-form.ts';
import { NoAnswerError } from './failures.ts';
import type { Session, Sessions } from './sessions.ts';

const PAGE_EVENTS = 1_000;

export interface LogReader {
  readStream(session: Session, stream: StreamName, options: ReadStreamOptions): Promise<readonly RecordedEvent[]>;
  readAll(session: Session, after: LogPosition, limit: number): Promise<readonly RecordedEvent[]>;
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
  /** The events of a read. */
  async function collect(
    session: Session,
    open: (client: Session['client']) => StreamingRead<ResolvedEvent> | StreamingRead<AllStreamResolvedEvent>,
  ): Promise<ReceivedEvent[]> {
    const startedMs = performance.now();
    const read = open(session.client);
    // An error that comes after the iteration has ended would be thrown where nobody can catch it.
    read.on('error', () => undefined);
    const end = (why: string) => () => read.destroy(new NoAnswerError(why));
    const silent = end(`EventStoreDB was silent for ${silenceMs} ms`);
    const cut = end('The connection to EventStoreDB was given up');
    let timer = setTimeout(silent, silenceMs);
    session.ended.addEventListener('abort', cut);
    if (session.ended.aborted) cut();
    try {
      const events: ReceivedEvent[] = [];
      for await (const { event } of read) {
        clearTimeout(timer);
        timer = setTimeout(silent, silenceMs);
        if (event !== undefined) events.push(event);
      }
      session.heardMs = performance.now();
      return events;
    } catch (error) {
      if (error instanceof StreamNotFoundError) return [];
      // Nothing else was heard of this client meanwhile either: it is dead.
      if (error instanceof NoAnswerError && session.heardMs < startedMs) sessions.discard(session, error.message);
      throw error;
    } finally {
      clearTimeout(timer);
      session.ended.removeEventListener('abort', cut);
      read.cancel().catch(() => undefined);
    }
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
  function page(session: Session, from: LogPosition, maxCount: number): Promise<ReceivedEvent[]> {
    const fromPosition = from === LOG_START ? START : toEsdbPosition(from);
    return collect(session, (client) =>
      client.readAll({ direction: FORWARDS, fromPosition, maxCount, requiresLeader: true }),
    );
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
        const events = await page(session, position, wanted);
        for (const event of events) {
          const at = positionOf(event);
          if (at <= position || found.length === limit) continue;
          position = at;
          if (isSystemStream(event.streamId)) continue;
          const recorded = toRecorded(event);
          if (recorded === null) passOver(log, event);
          else found.push(recorded);
        }
        if (events.length < wanted) break;
      }
      return found;
    },
    head: async (session) => {
      const options = { direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true } as const;
      const [last] = await collect(session, (client) => client.readAll(options));
      return last === undefined ? LOG_START : positionOf(last);
    },
  };
}

/** The log is Strata's alone: an event that somebody else wrote is nothing of the record, and worth a line. */
export function passOver(log: Log, event: ReceivedEvent): void {
  const { streamId: stream, revision } = event;
  log.warn({ stream, revision: String(revision) }, 'Passed over an event that Strata did not write');
}
