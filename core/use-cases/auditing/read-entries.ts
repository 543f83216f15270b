/**
 * Reads entries of an account's log with their openings, from their places in the read model.
 *
 * Invariants: an entry's leaf is the read model's, never computed from the event that was just read: if the log was
 * changed afterwards, the two do not agree, and whoever checks the leaf sees it. The events in memory are bounded in
 * number and length, and their records are asked for in one call.
 */
import { entryLine } from '../../audit/entry.ts';
import { type OpenableReference, openableReferences } from '../../audit/openings.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp, timestamp } from '../../kernel/ids.ts';
import type { JsonObject } from '../../kernel/json.ts';
import type { VaultDisclosure, VaultRef } from '../../kernel/vault-ref.ts';
import type { AccountLogReader, EntryPlace } from '../../ports/account-log.ts';
import { type EventStore, readPlaces } from '../../ports/event-store.ts';
import type { Vault } from '../../ports/vault.ts';
import { entryBatches } from './entry-batches.ts';
import { ENTRIES_READ_LENGTH_MAX } from './limits.ts';

/** Entries that a page or an export holds in memory at a time. Internal: both ways give the same entries. */
export const ENTRIES_READ_AT_ONCE_MAX = 32;

export interface EntriesContext {
  readonly events: Pick<EventStore, 'readStream' | 'readPositions'>;
  readonly readModels: AccountLogReader;
  readonly vault: Pick<Vault, 'discloseAll'>;
}

const READ_AT_ONCE = { countMax: ENTRIES_READ_AT_ONCE_MAX, lengthMax: ENTRIES_READ_LENGTH_MAX };
/** The earliest time that a log can have. */
export const FIRST_INSTANT = timestamp('0001-01-01T00:00:00.000Z');

/**
 * Returns how many entries have an earlier log time: the sequence of the first one that has this time or a later one.
 */
export async function entriesBefore(
  { readModels }: { readonly readModels: Pick<AccountLogReader, 'logPrefix'> },
  account: AccountId,
  at: Timestamp,
): Promise<number> {
  return at <= FIRST_INSTANT ? 0 : (await readModels.logPrefix(account, plusMs(at, -1))).size;
}

export interface ReadEntry {
  readonly place: EntryPlace;
  readonly event: RecordedEvent;
  /** The form of an export: `{entry, leaf, openings}` (core/audit/entry.ts). */
  readonly line: JsonObject;
}

/** Yields entries in the order of the places. */
export async function* entryLines(
  context: EntriesContext,
  account: AccountId,
  places: readonly EntryPlace[],
): AsyncGenerator<ReadEntry> {
  for (const batch of entryBatches(places, READ_AT_ONCE)) {
    const events = await readPlaces(context.events, batch);
    const held = events.map((event) => openableReferences(event));
    const opened = await context.vault.discloseAll(account, withoutDoubles(held.flat()));
    for (const [index, place] of batch.entries()) {
      const event = events[index];
      if (event === undefined) throw new TypeError('An event for each place');
      yield { place, event, line: lineOf(event, place, held[index] ?? [], opened) };
    }
  }
}

function lineOf(
  event: RecordedEvent,
  { sequence, leaf }: EntryPlace,
  held: readonly OpenableReference[],
  opened: ReadonlyMap<VaultRef, VaultDisclosure>,
): JsonObject {
  const openings = new Map<VaultRef, VaultDisclosure>();
  for (const { ref } of held) {
    const disclosure = opened.get(ref);
    if (disclosure !== undefined) openings.set(ref, disclosure);
  }
  return entryLine(event, sequence, leaf, openings);
}

/** Most events of a page come from the same few addresses. */
function withoutDoubles(references: readonly OpenableReference[]): readonly OpenableReference[] {
  return [...new Map(references.map((reference) => [reference.ref, reference])).values()];
}
