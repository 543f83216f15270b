/**
 * Writes the whole log as the lines of a file (log-file.ts), or goes on where an earlier export was cut short.
 *
 * Must stay true: memory is bounded by a page of events; every event up to the head at the start is in it, as stored
 * and never upcast, and none after that head, so that an export under a running server ends.
 */
import { LOG_START, type LogPosition, type RecordedEvent } from '../../kernel/envelope.ts';
import type { Digest } from '../../ports/digest.ts';
import type { EventStore } from '../../ports/event-store.ts';
import {
  closingLine,
  eventLine,
  eventText,
  type FileEvent,
  firstDigest,
  LOG_FILE_HEADER,
  nextDigest,
} from './log-file.ts';

/** So that even a page of the largest events stays far below the memory of a small machine. */
const PAGE_EVENTS = 100;

export interface LogSource {
  readonly events: Pick<EventStore, 'head' | 'readAll' | 'readStream'>;
  readonly digest: Digest;
}

/** Where an export stands: after so many events, the last of them at a position. */
export interface ExportPlace {
  readonly position: LogPosition;
  readonly events: number;
  /** Of the last event written. */
  readonly digest: string;
}

/** A piece of the file: whole lines. */
export interface ExportPiece {
  readonly text: string;
  readonly place: ExportPlace;
}

/** What was written before is not the beginning of this log's export. */
class ExportMismatch extends Error {
  override readonly name = 'ExportMismatch';
  readonly code = 'export-of-another-log';
}

/** Every event of the log in order, page by page, up to a position. */
export async function* readPages(
  events: Pick<EventStore, 'readAll'>,
  after: LogPosition,
  upTo: LogPosition | null,
): AsyncGenerator<readonly RecordedEvent[]> {
  let position = after;
  while (upTo === null || position < upTo) {
    const page = await events.readAll(position, PAGE_EVENTS);
    const last = page.at(-1);
    if (last === undefined) return;
    position = last.position;
    yield upTo === null || position <= upTo ? page : page.filter((event) => event.position <= upTo);
  }
}

/** The lines of the log, from the header or from a place on, to the closing line. Returns what that says. */
export async function* exportLog(source: LogSource, from: ExportPlace | null): AsyncGenerator<ExportPiece> {
  const { events, digest } = source;
  const head = await events.head();
  let place = from ?? { position: LOG_START, events: 0, digest: firstDigest(digest) };
  if (from === null) yield { text: `${LOG_FILE_HEADER}\n`, place };
  for await (const page of readPages(events, place.position, head)) {
    const lines: string[] = [];
    for (const event of page) {
      const text = eventText(event);
      place = {
        position: event.position,
        events: place.events + 1,
        digest: nextDigest(digest, place.digest, text),
      };
      lines.push(`${eventLine(place.digest, text)}\n`);
    }
    yield { text: lines.join(''), place };
  }
  yield { text: `${closingLine(place.digest, place.events)}\n`, place };
}

/**
 * Where to go on after the last event that a file holds, itself the `count`th. Throws `ExportMismatch` when this log
 * does not hold that event: then the file is another log's, or this one lost its tail.
 */
export async function placeAfter({ events }: LogSource, last: FileEvent, count: number): Promise<ExportPlace> {
  const { stream, revision } = last;
  const [found] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  if (found === undefined || eventText(found) !== last.text) {
    throw new ExportMismatch(`It ends with ${stream} revision ${revision}, which this log does not hold like that`);
  }
  return { position: found.position, events: count, digest: last.digest };
}
