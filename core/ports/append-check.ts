/**
 * The check that every event store runs before it accepts an append, and the definition of an append's size.
 *
 * Invariants: every adapter can store an append that passes, unchanged. So an unusual text from one caller never
 * fails a batch that carries the appends of other callers, and a log can be moved from one adapter to another.
 */
import type { NewEvent, StreamName } from '../kernel/envelope.ts';
import { parseUuid, timestamp } from '../kernel/ids.ts';
import { canonicalJson } from '../kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX, STREAM_NAME_BYTES_MAX } from '../kernel/limits.ts';
import { type AppendRequest, EventStoreError, type ExpectedRevision } from './event-store.ts';

/**
 * In an append of several events, the log keeps each event's index and count; they count as this many bytes an event.
 * Internal: it is a part of how the size of an append is counted.
 */
export const APPEND_PLACE_BYTES = 64;

/** The stores keep revisions and versions in 32 bits. Internal: no stream becomes as long. */
const INT32_MAX = 2 ** 31 - 1;
/** The length of `,"data":`, which joins an event's data to the rest of its envelope. */
const DATA_MEMBER_BYTES = 8;
/** Bytes of a UTF-16 code unit in UTF-8. Internal: it is a figure of UTF-8. */
const UTF8_BYTES_PER_CODE_UNIT_MAX = 3;

export interface CheckedAppend {
  /** The canonical JSON (RFC 8785) of each event's data: this text is stored and hashed. */
  readonly dataTexts: readonly string[];
  /**
   * An upper bound of the append's size, exact when it is near the limit. The size is the UTF-8 length of the canonical
   * JSON of the list of events, as `NewEvent`s without `isRecord`. An append of several events counts
   * `APPEND_PLACE_BYTES` more for each. The stream's name and the guards do not count.
   */
  readonly sizeBytes: number;
}

/**
 * Checks an append and serialises its data. Throws `EventStoreError`: `append-too-large` when the size is not below
 * `APPEND_SIZE_BYTES_MAX`; `invalid-event` for no events, a repeated id, data without canonical JSON, envelope text
 * with NUL or lone surrogates, and malformed ids, times, names or revisions.
 */
export function checkAppend(request: AppendRequest): CheckedAppend {
  checkStream(request.stream, request.expected);
  for (const guard of request.guards ?? []) checkStream(guard.stream, guard.revision);
  if (request.events.length === 0) throw invalid('An append needs at least one event');
  const ids = new Set<string>();
  const dataTexts: string[] = [];
  const envelopeTexts: string[] = [];
  for (const event of request.events) {
    checkEnvelope(event);
    if (ids.has(event.id)) throw invalid(`Event id ${event.id} occurs twice in one append`);
    ids.add(event.id);
    try {
      dataTexts.push(canonicalJson(event.data));
      envelopeTexts.push(canonicalJson(envelopeOf(event)));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw invalid(`Event ${event.id} has no canonical JSON: ${error.message}`, error);
    }
  }
  return { dataTexts, sizeBytes: checkedSizeBytes(dataTexts, envelopeTexts) };
}

function checkedSizeBytes(dataTexts: readonly string[], envelopeTexts: readonly string[]): number {
  const placeBytes = dataTexts.length > 1 ? APPEND_PLACE_BYTES : 0;
  const overheadBytes = dataTexts.length * (DATA_MEMBER_BYTES + 1 + placeBytes) + 1;
  const codeUnits = sum(dataTexts, (text) => text.length) + sum(envelopeTexts, (text) => text.length);
  const boundBytes = overheadBytes + codeUnits * UTF8_BYTES_PER_CODE_UNIT_MAX;
  if (boundBytes < APPEND_SIZE_BYTES_MAX) return boundBytes;
  const encoder = new TextEncoder();
  const utf8Bytes = (text: string) => encoder.encode(text).length;
  const sizeBytes = overheadBytes + sum(dataTexts, utf8Bytes) + sum(envelopeTexts, utf8Bytes);
  if (sizeBytes >= APPEND_SIZE_BYTES_MAX) {
    throw new EventStoreError(
      'append-too-large',
      `The append has ${sizeBytes} bytes; it must have fewer than ${APPEND_SIZE_BYTES_MAX}`,
    );
  }
  return sizeBytes;
}

function sum(texts: readonly string[], measure: (text: string) => number): number {
  return texts.reduce((total, text) => total + measure(text), 0);
}

/** Every field that counts, except the data, in a form that canonical JSON accepts. */
function envelopeOf(event: NewEvent) {
  const { id, type, version, accountId, occurredAt, requestId, sourceAddressRef, causationId } = event;
  const actor = { kind: event.actor.kind, id: event.actor.id };
  return { id, type, version, accountId, occurredAt, actor, requestId, sourceAddressRef, causationId };
}

function checkEnvelope(event: NewEvent): void {
  for (const id of [event.id, event.accountId, event.causationId]) {
    if (id !== null && parseUuid(id) !== id) throw invalid(`Not a UUID in lower case: ${JSON.stringify(id)}`);
  }
  for (const text of [event.type, event.actor.kind, event.actor.id, event.requestId, event.sourceAddressRef ?? '']) {
    // PostgreSQL's type `text` cannot hold NUL. In the data, JSON escapes it, so it does no harm there.
    if (text.includes('\0')) throw invalid(`Event ${event.id} has a NUL in its envelope`);
  }
  if (!isInt32(event.version)) throw invalid(`Event ${event.id} has version ${event.version}`);
  try {
    timestamp(event.occurredAt);
  } catch (error) {
    throw invalid(`Event ${event.id} has no valid time`, error);
  }
}

function checkStream(stream: StreamName, revision: ExpectedRevision): void {
  const named = /^[A-Za-z]+-[^\0]+$/.test(stream) && stream.isWellFormed();
  if (!named || stream.length * UTF8_BYTES_PER_CODE_UNIT_MAX > STREAM_NAME_BYTES_MAX) {
    throw invalid(`Not a stream's name: ${JSON.stringify(stream)}`);
  }
  if (revision !== 'none' && !isInt32(revision)) throw invalid(`Not a revision of ${stream}: ${revision}`);
}

function isInt32(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value < INT32_MAX;
}

/** The error of an append whose deadline passed before it was sent. */
export function tooLate({ stream }: AppendRequest): EventStoreError {
  return new EventStoreError('append-too-late', `The deadline of an append to ${stream} passed before it was sent`);
}

function invalid(message: string, cause?: unknown): EventStoreError {
  return new EventStoreError('invalid-event', message, { cause });
}
