/**
 * Lists a page of an account's log, filtered, oldest or newest first.
 *
 * Invariants: a page is bounded in entries and in length. A page that ended early says that there is more, and the
 * next one begins right after its last entry. The API's list serves no entry that is not what its leaf was made of.
 */
import { entryHash } from '../../audit/entry.ts';
import { MIB } from '../../kernel/byte-units.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId, EventId } from '../../kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../kernel/json.ts';
import type { EntryFilter, EntryPlace } from '../../ports/account-log.ts';
import { type EntriesContext, entriesBefore, entryLines, type ReadEntry } from './read-entries.ts';

/** The length of a page's entries, after which it ends early; one entry may be as large as an append. */
export const ENTRIES_PAGE_LENGTH_MAX = 4 * MIB;

export interface WantedEntries {
  readonly account: AccountId;
  /** The page includes the log up to this position. */
  readonly seen: LogPosition;
  readonly filter: EntryFilter;
  /** The sequence that the page begins after; null for the log's beginning. */
  readonly after: number | null;
  readonly limit: number;
}

export interface ListContext extends EntriesContext {
  readonly digest: Digest;
}

export interface EntriesPage {
  /** The form of an export: `{entry, leaf, openings}` (core/audit/entry.ts). */
  readonly lines: readonly JsonObject[];
  /** The sequence of the page's last entry; `after` for an empty page. */
  readonly nextAfter: number | null;
  readonly hasMore: boolean;
}

/** Somebody changed an event in the database after the tree grew by it. */
export interface ChangedEntry {
  readonly changed: Pick<EntryPlace, 'sequence' | 'stream' | 'revision' | 'eventId'>;
}

/**
 * A page ends before an entry whose hash is not that of its leaf, and only the next one, which would begin with it,
 * says so: whoever reads page by page has everything before it.
 */
export async function listEntries(
  context: ListContext,
  { account, seen, filter, after, limit }: WantedEntries,
): Promise<EntriesPage | ChangedEntry> {
  await context.readModels.accountLogCaughtUp(seen);
  const { size } = await context.readModels.logPrefix(account, null);
  const range = { from: after === null ? 0 : after + 1, to: size, limit: limit + 1 };
  const places = await context.readModels.entryPlaces(account, filter, range);
  const read = await readWithin(context, account, places, limit);
  const firstChanged = read.findIndex((one) => isChanged(context, one));
  const found = firstChanged < 0 ? read : read.slice(0, firstChanged);
  const changed = read[firstChanged]?.place;
  if (found.length === 0 && changed !== undefined) return { changed };
  const nextAfter = found.at(-1)?.place.sequence ?? after;
  return { lines: found.map(({ line }) => line), nextAfter, hasMore: found.length < places.length };
}

/** Whether an entry is not what its leaf was made of. */
export function isChanged({ digest }: Pick<ListContext, 'digest'>, { event, place }: ReadEntry): boolean {
  return entryHash(digest, event) !== place.leaf;
}

export interface WantedNewest extends Omit<WantedEntries, 'after'> {
  /** The sequence that the page ends before; null for the log's end. */
  readonly before: number | null;
}

export interface NewestEntries {
  readonly entries: readonly ReadEntry[];
  readonly hasMore: boolean;
}

/** The same, newest first. */
export async function listNewestEntries(
  context: EntriesContext,
  { account, seen, filter, before, limit }: WantedNewest,
): Promise<NewestEntries> {
  const { readModels } = context;
  await readModels.accountLogCaughtUp(seen);
  const { size } = await readModels.logPrefix(account, null);
  // Log times never decrease along the log: as bounds of the sequence they cost no search through it.
  const { since, until, ...others } = filter;
  const from = since === null ? 0 : await entriesBefore(context, account, since);
  const end = until === null ? size : await entriesBefore(context, account, until);
  const range = { from, to: Math.min(end, before ?? size), limit: limit + 1, newestFirst: true };
  const places = await readModels.entryPlaces(account, { ...others, since: null, until: null }, range);
  const entries = await readWithin(context, account, places, limit);
  return { entries, hasMore: entries.length < places.length };
}

/** Reads the first of the places, at most `limit`, and of what is longer than a page at least one. */
async function readWithin(
  context: EntriesContext,
  account: AccountId,
  places: readonly EntryPlace[],
  limit: number,
): Promise<readonly ReadEntry[]> {
  const read: ReadEntry[] = [];
  let length = 0;
  for await (const entry of entryLines(context, account, places.slice(0, limit))) {
    length += canonicalJson(entry.line).length;
    if (read.length > 0 && length > ENTRIES_PAGE_LENGTH_MAX) break;
    read.push(entry);
  }
  return read;
}

/** An event's entry, by its sequence or by the event's id; null if the account's log has none. */
export async function findEntry(
  context: EntriesContext,
  {
    account,
    seen,
    entry,
  }: { readonly account: AccountId; readonly seen: LogPosition; readonly entry: number | EventId },
): Promise<ReadEntry | null> {
  const { readModels } = context;
  await readModels.accountLogCaughtUp(seen);
  const place =
    typeof entry === 'number'
      ? (await readModels.entryPlaces(account, null, { from: entry, to: entry + 1, limit: 1 })).at(0)
      : await readModels.entryPlaceOf(account, entry);
  if (place === undefined || place === null) return null;
  for await (const read of entryLines(context, account, [place])) return read;
  return null;
}
