/**
 * The file that carries a whole event log from one store to another: lines of JSON, each ended by a line feed.
 *
 *     {"format":"strata-event-log","version":2}
 *     {"digest":"<64 hex>","event":{...}}         one for each event, in log order
 *     {"digest":"<64 hex>","events":2}            the number of events, and the last event's digest again
 *
 * `event` is the canonical JSON (RFC 8785) of everything that the log keeps of an event but its position, which the
 * order of the lines gives. Version 1 can still be read. It lacks `append_count`, `append_index` and `is_record`: each
 * of its events is an append of its own, and its category decides whether it is a record event. A digest is the
 * SHA-256, in hex, of the previous digest followed by the event's text. The digest before the first event is that of
 * the header's text.
 *
 * Invariants: one log gives one file, byte for byte, whatever store it is read from. A line that is missing,
 * changed, moved or repeated is detected at that line, not only at the end. The form of a released version never
 * changes.
 */
import type { Digest } from '../../kernel/digest.ts';
import { type ActorKind, isRecordByCategory, type RecordedEvent, type StreamName } from '../../kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../kernel/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../../kernel/json.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../kernel/limits.ts';
import { continuesAppend, missingOfAppend } from '../../kernel/whole-appends.ts';
import { checkAppend } from '../../ports/append-check.ts';
import { EventStoreError } from '../../ports/event-store.ts';

const FORMAT = 'strata-event-log';
/** The version of a file's form. Exports have the newest. */
export type LogFileVersion = 1 | 2;
export const LOG_FILE_VERSION = 2;
const VERSIONS: readonly LogFileVersion[] = [1, 2];

/** Returns the first line of a file, without its line feed. */
export function headerLine(version: LogFileVersion): string {
  return canonicalJson({ format: FORMAT, version });
}

/** Returns the digest that precedes the first event's digest. */
export function firstDigest(digest: Digest, version: LogFileVersion): string {
  return digest.sha256(headerLine(version));
}

/** Returns an event's digest, which depends on every event before it too. */
export function nextDigest(digest: Digest, before: string, eventText: string): string {
  return digest.sha256(before + eventText);
}

/** The members of an event that a file holds. Its line's place in the file is its place in the log. */
export type FiledEvent = Omit<RecordedEvent, 'position'>;

/** Returns the canonical JSON of an event without its position. Throws a TypeError for data that no log accepts. */
export function eventText(event: FiledEvent, version: LogFileVersion): string {
  return canonicalJson({
    account_id: event.accountId,
    actor: { id: event.actor.id, kind: event.actor.kind },
    ...(version === 1
      ? {}
      : { append_count: event.appendCount, append_index: event.appendIndex, is_record: event.isRecord }),
    causation_id: event.causationId,
    data: event.data,
    id: event.id,
    occurred_at: event.occurredAt,
    request_id: event.requestId,
    revision: event.revision,
    source_address_ref: event.sourceAddressRef,
    stream: event.stream,
    type: event.type,
    version: event.version,
  });
}

/** Returns the line of an event, without its line feed. */
export function eventLine(eventDigest: string, text: string): string {
  return `{"digest":"${eventDigest}","event":${text}}`;
}

/** Returns the line that ends a file, without its line feed. */
export function closingLine(lastDigest: string, events: number): string {
  return canonicalJson({ digest: lastDigest, events });
}

/** The file is not a complete export. The message says what is wrong with which line. */
export class LogFileError extends Error {
  override readonly name = 'LogFileError';
  readonly code = 'log-file-refused';
  /** Counted from 1. */
  readonly line: number;
  constructor(line: number, message: string) {
    super(`Line ${line}: ${message}`);
    this.line = line;
  }
}

/** A line of a file, not checked yet. */
export interface FileLine {
  /** Without its line feed. A line beyond `LOG_FILE_LINE_BYTES_MAX` may be cut, to a length that is still beyond it. */
  readonly bytes: Uint8Array;
  /** Whether a line feed follows. */
  readonly ended: boolean;
}

/** An event that was read from a file. */
export interface FileEvent {
  readonly line: number;
  readonly event: FiledEvent;
  /** Its canonical JSON, as `eventText` returns it. */
  readonly text: string;
  readonly digest: string;
}

export interface LogFileEnd {
  readonly events: number;
  /** The digest of the last event, which depends on all events. */
  readonly digest: string;
}

export type ReadLine =
  | { readonly kind: 'header' }
  | { readonly kind: 'event'; readonly event: FileEvent }
  | { readonly kind: 'end'; readonly end: LogFileEnd };

const EVENT_LINE = /^\{"digest":"([0-9a-f]{64})","event":(.*)\}$/s;

/** Reads a file line by line. Throws `LogFileError` at the first faulty line. */
export class LogFileReader {
  readonly #digest: Digest;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #line = 0;
  #events = 0;
  #version: LogFileVersion = LOG_FILE_VERSION;
  #last = '';
  /** The previous event, if further events of its append must follow. */
  #open: FiledEvent | null = null;
  #ended = false;

  constructor(digest: Digest) {
    this.#digest = digest;
  }

  /** The version of the file, after its header was read. */
  get version(): LogFileVersion {
    return this.#version;
  }

  /** The number of the last line that was read; 0 before the first. */
  get line(): number {
    return this.#line;
  }

  read(line: FileLine): ReadLine {
    this.#line += 1;
    if (this.#ended) throw this.fault('it follows the line that ends the file');
    if (line.bytes.length > LOG_FILE_LINE_BYTES_MAX) throw this.fault(`longer than ${LOG_FILE_LINE_BYTES_MAX} bytes`);
    if (!line.ended) throw this.fault('cut off: no line feed ends it');
    const text = this.#decode(line.bytes);
    if (this.#line === 1) return this.#readHeader(text);
    const [, stated = '', body] = EVENT_LINE.exec(text) ?? [];
    return body === undefined ? this.#readEnd(text) : this.#readEvent(stated, body);
  }

  /** The caller must call it after the last line. Throws if the line that closes the file is missing. */
  finish(): void {
    if (this.#ended) return;
    this.#line += 1;
    throw this.fault('missing: the file ends before the line that closes it');
  }

  /** Returns an error about the last line that was read. */
  fault(message: string): LogFileError {
    return new LogFileError(this.#line, message);
  }

  #decode(bytes: Uint8Array): string {
    try {
      return this.#decoder.decode(bytes);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw this.fault('not UTF-8');
    }
  }

  #readHeader(text: string): ReadLine {
    const known = VERSIONS.find((version) => text === headerLine(version));
    if (known !== undefined) {
      this.#version = known;
      this.#last = firstDigest(this.#digest, known);
      return { kind: 'header' };
    }
    const header = this.#parse(text);
    if (header['format'] !== FORMAT) throw this.fault('this is not an export of an event log');
    const version = JSON.stringify(header['version'] ?? null);
    throw this.fault(`an export of version ${version}; this program reads versions ${VERSIONS.join(' and ')}`);
  }

  #readEvent(stated: string, text: string): ReadLine {
    const expected = nextDigest(this.#digest, this.#last, text);
    if (stated !== expected) {
      throw this.fault('its digest does not follow from it and the lines before: it was changed, or lines are missing');
    }
    const event = this.#parseEvent(text);
    this.#checkAppend(event);
    this.#last = expected;
    this.#events += 1;
    return { kind: 'event', event: { line: this.#line, event, text, digest: expected } };
  }

  /** Checks that the file holds whole appends, the events of each one after another. */
  #checkAppend(event: FiledEvent): void {
    const { appendIndex, appendCount } = event;
    const begins = appendIndex === 0 && appendCount > 0;
    const follows = this.#open === null ? begins : continuesAppend(this.#open, event);
    if (!follows)
      throw this.fault(this.#open === null ? 'it begins inside an append' : 'the append before it has no end');
    this.#open = missingOfAppend(event) > 0 ? event : null;
  }

  #readEnd(text: string): ReadLine {
    const end = this.#parse(text);
    if (this.#open !== null) throw this.fault('the append before it has no end');
    if (text !== closingLine(this.#last, this.#events)) {
      const claim = typeof end['events'] === 'number' ? `${end['events']} events` : 'neither an event nor the end';
      throw this.fault(`it states ${claim}, or another digest, after ${this.#events} events`);
    }
    this.#ended = true;
    return { kind: 'end', end: { events: this.#events, digest: this.#last } };
  }

  #parse(text: string): JsonObject {
    try {
      const value = JSON.parse(text) as JsonValue;
      if (isJsonObject(value)) return value;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
    throw this.fault('not a JSON object');
  }

  /** Parses an event. `eventText` of the result is the same text again, and every log accepts the result. */
  #parseEvent(text: string): FiledEvent {
    const stored = this.#parse(text);
    const actor = stored['actor'] ?? null;
    const data = stored['data'] ?? null;
    if (!isJsonObject(actor) || !isJsonObject(data)) throw this.fault('an event without its actor or its data');
    const stream = this.#text(stored, 'stream') as StreamName;
    const revision = this.#number(stored, 'revision');
    const event: FiledEvent = {
      stream,
      revision,
      ...this.#storedBeside(stored, stream),
      id: this.#text(stored, 'id') as EventId,
      type: this.#text(stored, 'type'),
      version: this.#number(stored, 'version'),
      accountId: this.#textOrNull(stored, 'account_id') as AccountId | null,
      occurredAt: this.#text(stored, 'occurred_at') as Timestamp,
      // A kind of actor that only a later version knows is kept as it is.
      actor: { kind: this.#text(actor, 'kind') as ActorKind, id: this.#text(actor, 'id') },
      requestId: this.#text(stored, 'request_id'),
      sourceAddressRef: this.#textOrNull(stored, 'source_address_ref'),
      causationId: this.#textOrNull(stored, 'causation_id') as EventId | null,
      data,
    };
    try {
      checkAppend({ stream, expected: expectedBefore(revision), events: [event] });
    } catch (error) {
      if (!(error instanceof EventStoreError)) throw error;
      throw this.fault(`no log accepts this event: ${error.message}`);
    }
    if (eventText(event, this.#version) !== text) throw this.fault('this event is not in canonical JSON');
    return event;
  }

  /** Reads the members that version 1 lacks, or returns the values that hold for version 1. */
  #storedBeside(stored: JsonObject, stream: StreamName): Pick<FiledEvent, 'isRecord' | 'appendIndex' | 'appendCount'> {
    if (this.#version === 1) return { isRecord: isRecordByCategory(stream), appendIndex: 0, appendCount: 1 };
    const isRecord = stored['is_record'];
    if (typeof isRecord !== 'boolean') throw this.fault('is_record is neither true nor false');
    return {
      isRecord,
      appendIndex: this.#number(stored, 'append_index'),
      appendCount: this.#number(stored, 'append_count'),
    };
  }

  #text(object: JsonObject, member: string): string {
    const value = object[member];
    if (typeof value !== 'string') throw this.fault(`${member} is not a text`);
    return value;
  }

  #textOrNull(object: JsonObject, member: string): string | null {
    return object[member] === null ? null : this.#text(object, member);
  }

  #number(object: JsonObject, member: string): number {
    const value = object[member];
    if (typeof value !== 'number' || !Number.isSafeInteger(value)) throw this.fault(`${member} is not a whole number`);
    return value;
  }
}

/** Returns the revision that a stream must have for its next event to get this one. */
export function expectedBefore(revision: number): number | 'none' {
  return revision === 0 ? 'none' : revision - 1;
}
