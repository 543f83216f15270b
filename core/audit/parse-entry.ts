/**
 * Parses the lines of an export (docs/audit.md) and the entries that the API shows.
 *
 * Invariants: a value that has not the twelve members of an entry, each in its form, is no entry. Whether it is the
 * account's own and unaltered is another question, which a verifier answers.
 */
import { type ActorKind, type StreamName, streamName } from '../kernel/envelope.ts';
import { type EventId, parseTimestamp, parseUuid } from '../kernel/ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../kernel/json.ts';
import type { EntryEvent } from './entry.ts';

export type ParsedEntry = EntryEvent & { readonly sequence: number };

/** A line holds an entry, shows a neighbour of a slice as a guard, or is the last one, with the checkpoint. */
export type ExportLine =
  | { readonly entry: ParsedEntry; readonly isGuard: boolean }
  | { readonly checkpoint: JsonValue };

/** Throws TypeError for any other text. */
export function parseExportLine(text: string): ExportLine {
  const line = JSON.parse(text) as JsonValue;
  if (isJsonObject(line)) {
    const { entry, guard, checkpoint } = line;
    if (entry !== undefined) return { entry: parseEntry(entry), isGuard: guard !== undefined };
    if (checkpoint !== undefined) return { checkpoint };
  }
  throw new TypeError('Neither an entry nor a checkpoint');
}

const ACTOR_KINDS: readonly ActorKind[] = ['token', 'user', 'trust_rule', 'system', 'admin'];
const MEMBERS = 12;

/** Throws TypeError for a value that is no entry. */
function parseEntry(value: JsonValue): ParsedEntry {
  if (!isJsonObject(value) || Object.keys(value).length !== MEMBERS) throw new TypeError('An entry has twelve members');
  const { id, occurred_at: at, causation_id: cause } = value;
  const eventId = typeof id === 'string' ? parseUuid<EventId>(id) : null;
  const occurredAt = typeof at === 'string' ? parseTimestamp(at) : null;
  const causationId = typeof cause === 'string' ? parseUuid<EventId>(cause) : null;
  if (eventId === null) throw noEntry('id');
  if (occurredAt === null) throw noEntry('occurred_at');
  if (cause !== null && causationId === null) throw noEntry('causation_id');
  return {
    sequence: countOf(value, 'sequence'),
    id: eventId,
    stream: streamOf(textOf(value, 'stream')),
    revision: countOf(value, 'revision'),
    type: textOf(value, 'type'),
    version: countOf(value, 'version'),
    occurredAt,
    actor: actorOf(value['actor']),
    requestId: textOf(value, 'request_id'),
    sourceAddressRef: value['source_address_ref'] === null ? null : textOf(value, 'source_address_ref'),
    causationId,
    data: objectOf(value['data'], 'data'),
  };
}

function noEntry(member: string): TypeError {
  return new TypeError(`The member ${member} of an entry has another form`);
}

function textOf(entry: JsonObject, member: string): string {
  const text = entry[member];
  if (typeof text !== 'string') throw noEntry(member);
  return text;
}

function countOf(entry: JsonObject, member: string): number {
  const count = entry[member];
  if (typeof count !== 'number' || !Number.isSafeInteger(count) || count < 0) throw noEntry(member);
  return count;
}

function objectOf(value: JsonValue | undefined, member: string): JsonObject {
  if (value === undefined || !isJsonObject(value)) throw noEntry(member);
  return value;
}

function streamOf(text: string): StreamName {
  const dash = text.indexOf('-');
  return streamName(text.slice(0, Math.max(0, dash)), text.slice(dash + 1));
}

function actorOf(value: JsonValue | undefined): EntryEvent['actor'] {
  const actor = objectOf(value, 'actor');
  const kind = ACTOR_KINDS.find((one) => one === actor['kind']);
  if (kind === undefined || typeof actor['id'] !== 'string') throw noEntry('actor');
  return { kind, id: actor['id'] };
}
