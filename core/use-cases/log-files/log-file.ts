/**
 * The file that carries a whole event log from one store to another: lines of JSON, each ended by a line feed.
 *
 *     {"format":"strata-event-log","version":1}
 *     {"digest":"<64 hex>","event":{...}}         one for each event, in log order
 *     {"digest":"<64 hex>","events":2}            how many there were, and the last event's digest again
 *
 * `event` is the canonical JSON (RFC 8785) of all that the log keeps of an event but its position, which is the
 * place of its line. A digest is the SHA-256, in hex, of the digest before and the event's text, written one after the
 * other; the one before the first is that of the header's text.
 *
 * Must stay true: one log gives one file, byte for byte, whatever store it is read from; and a line that is missing,
 * changed, moved or repeated is known at that line, not only at the end. The form of a released version never changes.
 */
import type { ActorKind, NewEvent, RecordedEvent, StreamName } from '../../kernel/envelope.ts';
import type { AccountId, EventId, Timestamp } from '../../kernel/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../../kernel/json.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../kernel/limits.ts';
import { checkAppend } from '../../ports/append-check.ts';
import type { Digest } from '../../ports/digest.ts';
import { EventStoreError } from '../../ports/event-store.ts';

const FORMAT = 'strata-event-log';
const VERSION = 1;
export const LOG_FILE_HEADER = canonicalJson({ format: FORMAT, version: VERSION });

/** The digest that stands before the first event's. */
export function firstDigest(digest: Digest): string {
  return digest.sha256(LOG_FILE_HEADER);
}

/** An event's digest, which holds every event before it too. */
export function nextDigest(digest: Digest, before: string, eventText: string): string {
  return digest.sha256(before + eventText);
}

/** All that is kept of an event but its position. Throws TypeError for what no log can have taken. */
export function eventText(event: Omit<RecordedEvent, 'position'>): string {
  return canonicalJson({
    account_id: event.accountId,
    actor: { id: event.actor.id, kind: event.actor.kind },
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

/** A line for an event, without its line feed. */
export function eventLine(eventDigest: string, text: string): string {
  return `{"digest":"${eventDigest}","event":${text}}`;
}

/** The line that ends a file, without its line feed. */
export function closingLine(lastDigest: string, events: number): string {
  return canonicalJson({ digest: lastDigest, events });
}

/** What was read is no whole export: the message tells what is wrong. */
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

/** A line as it was found. */
export interface FileLine {
  /** Without its line feed; of a line beyond `LOG_FILE_LINE_BYTES_MAX` only a part that is longer than that. */
  readonly bytes: Uint8Array;
  /** Whether a line feed follows. */
  readonly ended: boolean;
}

/** An event as a file tells it. */
export interface FileEvent {
  readonly line: number;
  readonly stream: StreamName;
  readonly revision: number;
  readonly event: NewEvent;
  /** Its canonical JSON, as `eventText` gives it. */
  readonly text: string;
  readonly digest: string;
}

export interface LogFileEnd {
  readonly events: number;
  /** Of the last event, and so of all of them. */
  readonly digest: string;
}

export type ReadLine =
  | { readonly kind: 'header' }
  | { readonly kind: 'event'; readonly event: FileEvent }
  | { readonly kind: 'end'; readonly end: LogFileEnd };

const EVENT_LINE = /^\{"digest":"([0-9a-f]{64})","event":(.*)\}$/s;

/** Reads a file line by line. Throws `LogFileError` at the first line that is not as it must be, and at no other. */
export class LogFileReader {
  readonly #digest: Digest;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #line = 0;
  #events = 0;
  #last: string;
  #ended = false;

  constructor(digest: Digest) {
    this.#digest = digest;
    this.#last = firstDigest(digest);
  }

  /** The number of the line read last; 0 before the first. */
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

  /** To be called when there is no further line. */
  finish(): void {
    if (this.#ended) return;
    this.#line += 1;
    throw this.fault('missing: the file ends before the line that closes it');
  }

  /** A fault of the line read last. */
  fault(message: string): LogFileError {
    return new LogFileError(this.#line, message);
  }

  #decode(bytes: Uint8Array): string {
    try {
      return this.#decoder.decode(bytes);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw this.fault('no UTF-8');
    }
  }

  #readHeader(text: string): ReadLine {
    if (text === LOG_FILE_HEADER) return { kind: 'header' };
    const header = this.#parse(text);
    if (header['format'] !== FORMAT) throw this.fault('this is no export of an event log');
    const version = JSON.stringify(header['version'] ?? null);
    throw this.fault(`an export of version ${version}; this program reads version ${VERSION}`);
  }

  #readEvent(stated: string, text: string): ReadLine {
    const expected = nextDigest(this.#digest, this.#last, text);
    if (stated !== expected) {
      throw this.fault('its digest does not follow from it and the lines before: it was changed, or lines are missing');
    }
    const { stream, revision, event } = this.#parseEvent(text);
    this.#last = expected;
    this.#events += 1;
    return { kind: 'event', event: { line: this.#line, stream, revision, event, text, digest: expected } };
  }

  #readEnd(text: string): ReadLine {
    const end = this.#parse(text);
    if (text !== closingLine(this.#last, this.#events)) {
      const claim = typeof end['events'] === 'number' ? `${end['events']} events` : 'neither an event nor the end';
      throw this.fault(`it tells of ${claim}, or of another digest, after ${this.#events} events`);
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
    throw this.fault('not an object of JSON');
  }

  /** The parser at this edge: what it returns writes the same text again, and every log takes it. */
  #parseEvent(text: string): { readonly stream: StreamName; readonly revision: number; readonly event: NewEvent } {
    const stored = this.#parse(text);
    const actor = stored['actor'] ?? null;
    const data = stored['data'] ?? null;
    if (!isJsonObject(actor) || !isJsonObject(data)) throw this.fault('an event without its actor or its data');
    const at = {
      stream: this.#text(stored, 'stream') as StreamName,
      revision: this.#number(stored, 'revision'),
    };
    const event: NewEvent = {
      id: this.#text(stored, 'id') as EventId,
      type: this.#text(stored, 'type'),
      version: this.#number(stored, 'version'),
      accountId: this.#textOrNull(stored, 'account_id') as AccountId | null,
      occurredAt: this.#text(stored, 'occurred_at') as Timestamp,
      // A kind that a later program knows is carried like any other.
      actor: { kind: this.#text(actor, 'kind') as ActorKind, id: this.#text(actor, 'id') },
      requestId: this.#text(stored, 'request_id'),
      sourceAddressRef: this.#textOrNull(stored, 'source_address_ref'),
      causationId: this.#textOrNull(stored, 'causation_id') as EventId | null,
      data,
    };
    try {
      checkAppend({ stream: at.stream, expected: expectedBefore(at.revision), events: [event] });
    } catch (error) {
      if (!(error instanceof EventStoreError)) throw error;
      throw this.fault(`no log takes this event: ${error.message}`);
    }
    if (eventText({ ...event, ...at }) !== text) throw this.fault('this event is not in canonical JSON');
    return { ...at, event };
  }

  #text(object: JsonObject, member: string): string {
    const value = object[member];
    if (typeof value !== 'string') throw this.fault(`${member} is no text`);
    return value;
  }

  #textOrNull(object: JsonObject, member: string): string | null {
    return object[member] === null ? null : this.#text(object, member);
  }

  #number(object: JsonObject, member: string): number {
    const value = object[member];
    if (typeof value !== 'number') throw this.fault(`${member} is no number`);
    return value;
  }
}

/** What a stream must stand at for its next event to have a revision. */
export function expectedBefore(revision: number): number | 'none' {
  return revision === 0 ? 'none' : revision - 1;
}
