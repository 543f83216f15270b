/**
 * The entries of an account's log: record events in the form that the API and an export show, and their leaves.
 *
 * Invariants: an entry shows an event as it was first written, never upcast, with these twelve members and no other.
 * A leaf keeps its hash: the canonical text of an event (RFC 8785) never changes. `sequence` is not hashed, because
 * it is the leaf's index.
 */
import type { Digest } from '../kernel/digest.ts';
import type { RecordedEvent } from '../kernel/envelope.ts';
import { canonicalJson, type JsonObject } from '../kernel/json.ts';
import type { VaultDisclosure, VaultRef } from '../kernel/vault-ref.ts';
import type { Hash } from '../ports/account-log.ts';
import { base64OfHex } from './base64.ts';
import { leafHash } from './tree.ts';

/** What an entry shows of an event. */
export type EntryEvent = Omit<RecordedEvent, 'accountId' | 'isRecord' | 'position' | 'appendIndex' | 'appendCount'>;

/** Returns the members of an entry that its leaf is the hash of: all but `sequence`. */
export function leafOf(event: EntryEvent): JsonObject {
  return {
    id: event.id,
    stream: event.stream,
    revision: event.revision,
    type: event.type,
    version: event.version,
    occurred_at: event.occurredAt,
    actor: { kind: event.actor.kind, id: event.actor.id },
    request_id: event.requestId,
    source_address_ref: event.sourceAddressRef,
    causation_id: event.causationId,
    data: event.data,
  };
}

/** Returns the entry that an event is at this place of its account's log. */
export function entryOf(event: EntryEvent, sequence: number): JsonObject {
  return { sequence, ...leafOf(event) };
}

/** Returns the canonical text that the event's leaf is the hash of. */
export function leafText(event: EntryEvent): string {
  return canonicalJson(leafOf(event));
}

/** Returns the hash of the event's leaf. */
export function entryHash(digest: Digest, event: EntryEvent): Hash {
  return leafHash(digest, leafText(event));
}

/** What opens the references of an entry: by reference, for those whose records are there and no secret. */
export type Openings = ReadonlyMap<VaultRef, VaultDisclosure>;

/** Returns an entry as the API and an export show it: with the hash of its leaf in base64, and its openings. */
export function entryLine(event: EntryEvent, sequence: number, leaf: Hash, openings: Openings): JsonObject {
  const opened = [...openings].map(([ref, { nonce, value }]) => [ref, { nonce, value }] as const);
  return { entry: entryOf(event, sequence), leaf: base64OfHex(leaf), openings: Object.fromEntries(opened) };
}

/** Returns an entry as a slice shows its neighbours: without openings, and marked as no entry of the slice. */
export function guardLine(event: EntryEvent, sequence: number, leaf: Hash): JsonObject {
  return { entry: entryOf(event, sequence), guard: true, leaf: base64OfHex(leaf) };
}
