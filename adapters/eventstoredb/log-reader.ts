/**
 * Reads of EventStoreDB.
 *
 * Invariants: every read requires the leader, whose answers are as new as the log (except for the moment in which
 * a deposed leader has not stepped down yet); a read whose server falls silent fails after `silenceMs`; no read returns
 * an event of a stream that was pruned.
 */
import {
  type AllStreamResolvedEvent,
  BACKWARDS,
  END,
  FORWARDS,
  type ResolvedEvent,
  START,
  StreamDeletedError,
  type StreamingRead,
  StreamNotFoundError,
} from '@eventstore/db-client';
import { LOG_START, type LogPosition, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import { missingOfAppend } from '../../core/kernel/whole-appends.ts';
import { EventStoreError, type ExpectedRevision, type ReadStreamOptions } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { createHideDeleted } from './deleted-streams.ts';
import { positionOf, type ReceivedEvent, toEsdbPosition, toRecorded } from './event-form.ts';
import { NoAnswerError } from './failures.ts';
import { areOfOneAppend, BATCH_EVENTS_MAX, createAppendAssembler, type LogEntry, toLogEntry } from './log-entries.ts';
import type { Session, Sessions } from './sessions.ts';

const PAGE_EVENTS = 1_000;
const REST_MISSING = 'EventStoreDB shows a part of an append, and not the rest';
/**
 * A window stops growing at this much data; the event that reaches it, and its append's rest, may exceed it. Internal:
 * the rest follows.
 */
const WINDOW_SIZE_BYTES_MAX = 16 * 1024 * 1024;

/** The events right behind a position. */
export interface Window {
  /** At most `BATCH_EVENTS_MAX`, and the rest of the last append. */
  readonly entries: readonly LogEntry[];
  /** False when there may be more right behind it. */
  readonly reachedEnd: boolean;
}

export interface LogReaderOptions {
  readonly sessions: Sessions;
  readonly log: Log;
  /** How long a read may bring nothing. */
  readonly silenceMs: number;
}

type OpenRead = (client: Session['client']) => StreamingRead<ResolvedEvent> | StreamingRead<AllStreamResolvedEvent>;

export class LogReader {
  readonly #sessions: Sessions;
  readonly #log: Log;
  readonly #silenceMs: number;
  readonly #hideDeleted = createHideDeleted();

  constructor({ sessions, log, silenceMs }: LogReaderOptions) {
    this.#sessions = sessions;
    this.#log = log;
    this.#silenceMs = silenceMs;
  }

  /** See `EventStore.readStream` (core/ports/event-store.ts). */
  async readStream(session: Session, stream: StreamName, range: ReadStreamOptions): Promise<readonly RecordedEvent[]> {
    const { direction, from, limit } = range;
    const backwards = direction === 'backwards';
    const common = { direction: backwards ? BACKWARDS : FORWARDS, maxCount: limit, requiresLeader: true } as const;
    const fromRevision = from === undefined ? (backwards ? END : START) : BigInt(from);
    const events = await this.#collect(session, (client) => client.readStream(stream, { ...common, fromRevision }));
    if (events.length === 0 && backwards && from !== undefined) {
      // The read began beyond the stream's end: the port then returns the stream's last events.
      const last = await this.revisionOf(session, stream);
      if (last === 'none' || last >= from) return [];
      return this.readStream(session, stream, { direction, limit });
    }
    const found = events.map(recordedIn);
    const [newest] = found;
    // A stream ends with the end of an append, unless the server has not shown the rest yet.
    const isLast = newest !== undefined && (from === undefined || newest.revision < from);
    if (backwards && isLast && missingOfAppend(newest) > 0) throw new NoAnswerError(REST_MISSING);
    return [...found, ...(await this.#restOfStream(session, found.at(-1), direction))];
  }

  /** See `EventStore.readAll` (core/ports/event-store.ts). */
  async readAll(session: Session, after: LogPosition, limit: number): Promise<readonly RecordedEvent[]> {
    const found: RecordedEvent[] = [];
    let position = after;
    for (;;) {
      const last = found.at(-1);
      const missing = Math.max(limit - found.length, last === undefined ? 0 : missingOfAppend(last));
      if (missing === 0) return found;
      // One more, for the event at the position itself, which is skipped below.
      const wanted = Math.min(missing, PAGE_EVENTS) + 1;
      const events = await this.#collect(session, openPage(position, wanted));
      const before = position;
      const received = events
        .filter((event) => positionOf(event) > before)
        .map((event) => toLogEntry(event, this.#log));
      for (const next of await this.#withoutDeleted(session, received)) {
        ({ position } = next);
        // An event that does not continue the append ends it.
        if (found.length >= limit && !areOfOneAppend(found.at(-1), next.event)) return found;
        if (next.event !== null) found.push(next.event);
      }
      if (events.length === wanted) continue;
      const end = found.at(-1);
      if (end !== undefined && missingOfAppend(end) > 0) throw new NoAnswerError(REST_MISSING);
      return found;
    }
  }

  /** For a subscription: includes the server's own events. Rejects when the signal aborts. */
  async readWindow(session: Session, after: LogPosition, signal: AbortSignal): Promise<Window> {
    const entries: LogEntry[] = [];
    const appends = createAppendAssembler();
    let from = after;
    let sizeBytes = 0;
    for (;;) {
      let seen = 0;
      const wantsMore = (event: ReceivedEvent): boolean => {
        seen += 1;
        if (positionOf(event) <= from) return true;
        const next = toLogEntry(event, this.#log);
        from = next.position;
        sizeBytes += next.sizeBytes;
        entries.push(...appends.add(next));
        return entries.length < BATCH_EVENTS_MAX && sizeBytes < WINDOW_SIZE_BYTES_MAX;
      };
      const finished = await this.#forEachEvent(session, openPage(from, BATCH_EVENTS_MAX + 1), wantsMore, signal);
      const reachedEnd = finished && seen <= BATCH_EVENTS_MAX;
      // The next window reads an unfinished append again, unless this window would be empty: then this one reads on.
      if (entries.length > 0 || reachedEnd) {
        return { entries: await this.#withoutDeleted(session, entries), reachedEnd };
      }
    }
  }

  /** The position of the last event, the server's own included. */
  async head(session: Session): Promise<LogPosition> {
    const options = { direction: BACKWARDS, fromPosition: END, maxCount: 1, requiresLeader: true } as const;
    const [last] = await this.#collect(session, (client) => client.readAll(options));
    return last === undefined ? LOG_START : positionOf(last);
  }

  /** Whether the log has a record event behind a position. */
  async hasRecordBehind(session: Session, position: LogPosition): Promise<boolean> {
    const options = { direction: BACKWARDS, fromPosition: END, requiresLeader: true } as const;
    let found = false;
    const wantsMore = (event: ReceivedEvent): boolean => {
      if (positionOf(event) <= position) return false;
      found = toLogEntry(event, this.#log).event?.isRecord === true;
      return !found;
    };
    await this.#forEachEvent(session, (client) => client.readAll(options), wantsMore);
    return found;
  }

  #withoutDeleted(session: Session, entries: readonly LogEntry[]): Promise<readonly LogEntry[]> {
    return this.#hideDeleted(entries, async (stream) => (await this.revisionOf(session, stream)) === 'none');
  }

  /** The stream's last revision. */
  async revisionOf(session: Session, stream: StreamName): Promise<ExpectedRevision> {
    const options = { direction: BACKWARDS, fromRevision: END, maxCount: 1, requiresLeader: true } as const;
    const [last] = await this.#collect(session, (client) => client.readStream(stream, options));
    return last === undefined ? 'none' : Number(last.revision);
  }

  /** The events that complete the append in which a page of a stream ended, in the direction of the page. */
  async #restOfStream(
    session: Session,
    last: RecordedEvent | undefined,
    direction: ReadStreamOptions['direction'],
  ): Promise<readonly RecordedEvent[]> {
    const missing = last === undefined ? 0 : missingOfAppend(last, direction);
    if (last === undefined || missing === 0) return [];
    const backwards = direction === 'backwards';
    const fromRevision = BigInt(last.revision) + (backwards ? -1n : 1n);
    const options = { fromRevision, maxCount: missing, requiresLeader: true } as const;
    const events = await this.#collect(session, (client) =>
      client.readStream(last.stream, { ...options, direction: backwards ? BACKWARDS : FORWARDS }),
    );
    if (!backwards && events.length < missing) throw new NoAnswerError(REST_MISSING);
    return events.map(recordedIn);
  }

  /** All events of a read. */
  async #collect(session: Session, open: OpenRead): Promise<readonly ReceivedEvent[]> {
    const events: ReceivedEvent[] = [];
    await this.#forEachEvent(session, open, (event) => events.push(event) > 0);
    return events;
  }

  /** Calls `wantsMore` for each event until it returns false; resolves true if the read finished. */
  async #forEachEvent(
    session: Session,
    open: OpenRead,
    wantsMore: (event: ReceivedEvent) => boolean,
    signal: AbortSignal = session.ended,
  ): Promise<boolean> {
    const silenceMs = this.#silenceMs;
    const startedMs = performance.now();
    const read = open(session.client);
    // Without a listener, an error after the end of the iteration would be thrown where nobody can catch it.
    read.on('error', () => undefined);
    const fail = (why: string) => () => read.destroy(new NoAnswerError(why));
    const silent = fail(`EventStoreDB was silent for ${silenceMs} ms`);
    const cut = fail('The connection to EventStoreDB was given up');
    let timer = setTimeout(silent, silenceMs);
    const stopWaiting = session.waits();
    const signals = [session.ended, signal];
    for (const ended of signals) ended.addEventListener('abort', cut);
    if (signals.some(({ aborted }) => aborted)) cut();
    try {
      let more = true;
      for await (const { event } of read) {
        clearTimeout(timer);
        timer = setTimeout(silent, silenceMs);
        session.lastAnswerMs = performance.now();
        more = event === undefined || wantsMore(event);
        if (!more) break;
      }
      session.lastAnswerMs = performance.now();
      return more;
    } catch (error) {
      if (error instanceof StreamNotFoundError || error instanceof StreamDeletedError) return true;
      // No other call of this client got an answer since then either: the client is dead.
      if (error instanceof NoAnswerError && !signal.aborted && session.lastAnswerMs < startedMs)
        this.#sessions.discard(session, error.message);
      throw error;
    } finally {
      clearTimeout(timer);
      stopWaiting();
      for (const ended of signals) ended.removeEventListener('abort', cut);
      read.cancel().catch(() => undefined);
    }
  }
}

function recordedIn(event: ReceivedEvent): RecordedEvent {
  const recorded = toRecorded(event);
  if (recorded !== null) return recorded;
  const place = `${event.streamId} revision ${event.revision}`;
  throw new EventStoreError('invalid-event', `${place} was not written by Strata`);
}

/** A page of all streams from a position on, including the event at the position. */
function openPage(from: LogPosition, maxCount: number): OpenRead {
  const fromPosition = from === LOG_START ? START : toEsdbPosition(from);
  return (client) => client.readAll({ direction: FORWARDS, fromPosition, maxCount, requiresLeader: true });
}
