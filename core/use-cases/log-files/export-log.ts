/**
 * Writes the whole log as the lines of a file (log-file.ts), or continues an earlier export that was interrupted.
 *
 * Invariants: memory is bounded by a page of events. The file holds every event up to the head that was read at the
 * start, as stored and never upcast, and no append after that head. So an export ends even while a server is running.
 */
import type { Digest } from '../../kernel/digest.ts';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../kernel/envelope.ts';
import { throughPosition } from '../../kernel/whole-appends.ts';
import type { EventStore } from '../../ports/event-store.ts';
import {
  closingLine,
  eventLine,
  eventText,
  type FileEvent,
  firstDigest,
  headerLine,
  LOG_FILE_VERSION,
  nextDigest,
} from './log-file.ts';

/** Even a page of the largest events takes much less memory than a small machine has. */
const PAGE_EVENTS = 100;

export interface LogSource {
  readonly events: Pick<EventStore, 'head' | 'readAll' | 'readStream'>;
  readonly digest: Digest;
}

/** How far an export has come. */
export interface ExportPlace {
  /** The position of the last event written. */
  readonly position: LogPosition;
  /** The number of events written. */
  readonly events: number;
  /** The digest of the last event written. */
  readonly digest: string;
}

/** A piece of the file. It consists of whole lines. */
export interface ExportPiece {
  readonly text: string;
  readonly place: ExportPlace;
}

/** The file that an export should continue is not the beginning of an export of this log. */
class ExportMismatch extends Error {
  override readonly name = 'ExportMismatch';
  readonly code = 'export-of-another-log';
}

/** Yields every event of the log in order, page by page, to the end of the append that holds the position `upTo`. */
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
    yield upTo === null || position <= upTo ? page : throughPosition(page, upTo);
  }
}

/** Yields the lines of the file from the header, or from a place on, to the closing line. */
export async function* exportLog(source: LogSource, from: ExportPlace | null): AsyncGenerator<ExportPiece> {
  const { events, digest } = source;
  const head = await events.head();
  let place = from ?? { position: LOG_START, events: 0, digest: firstDigest(digest, LOG_FILE_VERSION) };
  if (from === null) yield { text: `${headerLine(LOG_FILE_VERSION)}\n`, place };
  for await (const page of readPages(events, place.position, head)) {
    const lines: string[] = [];
    for (const event of page) {
      const text = eventText(event, LOG_FILE_VERSION);
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
 * Returns where to continue after `last`, which is the last event of a file of the newest version, and its `count`th.
 * Throws `ExportMismatch` if this log does not hold that event: the file is of another log, or this log lost its tail.
 */
export async function placeAfter({ events }: LogSource, last: FileEvent, count: number): Promise<ExportPlace> {
  const { stream, revision } = last.event;
  const [found] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  if (found === undefined || eventText(found, LOG_FILE_VERSION) !== last.text) {
    throw new ExportMismatch(`It ends with ${stream} revision ${revision}, which this log does not hold in that form`);
  }
  return { position: found.position, events: count, digest: last.digest };
}
