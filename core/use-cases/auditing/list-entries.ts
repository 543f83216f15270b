/**
 * Lists a page of an account's log, filtered, oldest first.
 *
 * Must stay true: a page is bounded in entries and in length. A page that ended early says that there is more, and the
 * next one begins right after its last entry.
 */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../kernel/json.ts';
import { ENTRIES_PAGE_LENGTH_MAX } from '../../kernel/limits.ts';
import type { EntryFilter } from '../../ports/account-log.ts';
import { type EntriesContext, entryLines } from './read-entries.ts';

export interface WantedEntries {
  readonly account: AccountId;
  /** The page includes the log up to this position. */
  readonly seen: LogPosition;
  readonly filter: EntryFilter;
  /** The sequence that the page begins after; null for the log's beginning. */
  readonly after: number | null;
  readonly limit: number;
}

export interface EntriesPage {
  /** As in an export: `{entry, leaf, openings}` (core/audit/entry.ts). */
  readonly lines: readonly JsonObject[];
  /** The sequence of the page's last entry; `after` for an empty page. */
  readonly nextAfter: number | null;
  readonly hasMore: boolean;
}

export async function listEntries(
  context: EntriesContext,
  { account, seen, filter, after, limit }: WantedEntries,
): Promise<EntriesPage> {
  await context.readModels.accountLogCaughtUp(seen);
  const { size } = await context.readModels.logPrefix(account, null);
  const range = { from: after === null ? 0 : after + 1, to: size, limit: limit + 1 };
  const places = await context.readModels.entryPlaces(account, filter, range);
  const lines: JsonObject[] = [];
  let nextAfter = after;
  let length = 0;
  for await (const { place, line } of entryLines(context, account, places.slice(0, limit))) {
    length += canonicalJson(line).length;
    if (lines.length > 0 && length > ENTRIES_PAGE_LENGTH_MAX) break;
    lines.push(line);
    nextAfter = place.sequence;
  }
  return { lines, nextAfter, hasMore: lines.length < places.length };
}
