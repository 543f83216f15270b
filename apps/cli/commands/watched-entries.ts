/**
 * The entries between two checkpoints that `strata audit watch` saw: that they are what the newer one signs.
 *
 * Invariants: what is kept of the older log is its complete subtrees, as the proof between the two has them, so no
 * entry is asked for twice. One page of entries is in memory at a time.
 */
import { canonicalText, isArray, isObject, type Json, type JsonObject, parseJson } from '../../verifier/canonical.ts';
import type { Checkpoint } from '../../verifier/checkpoint.ts';
import { checkEntry, createEntryOrder, type EntryOrder } from '../../verifier/entry.ts';
import type { KeyChain } from '../../verifier/keys.ts';
import { type Hash, hashOfBase64, type Range, rootOf, withLeaf } from '../../verifier/tree.ts';
import { ApiError, type Client } from '../client/client.ts';

/** What the API gives at most. Internal: smaller pages have the same entries. */
const PAGE_ENTRIES_MAX = 1_000;

/** Returns what is wrong with the entries behind `before`, up to the checkpoint; null if they are what it signs. */
export async function entriesFault(
  client: Client,
  before: Range,
  { checkpoint, chain }: { readonly checkpoint: Checkpoint; readonly chain: KeyChain },
): Promise<string | null> {
  const { size, root, account } = checkpoint;
  const order = createEntryOrder();
  let range = before;
  while (range.end < size) {
    const page = await pageOf(client, range.end, size);
    if (typeof page === 'string') return page;
    for (const line of page) {
      const leaf = checkLine(line, range.end, { order, chain, count: range.end - before.end + 1 });
      if ('fault' in leaf) return `entry ${range.end}: ${leaf.fault}`;
      range = withLeaf(range, leaf.hash);
    }
  }
  const other = order.accountFault(account);
  if (other !== null) return `entry ${before.end + other.line - 1}: ${other.message}`;
  return rootOf(range) === root ? null : `entries ${before.end} to ${size - 1} are not those that it signs`;
}

/** Returns the entries from this one on, or why there are none. */
async function pageOf(client: Client, next: number, size: number): Promise<readonly Json[] | string> {
  const limit = Math.min(PAGE_ENTRIES_MAX, size - next);
  try {
    const query = next === 0 ? { limit } : { limit, after: next - 1 };
    const { text } = await client.callWithText('listAccountEvents', { query });
    const page = parseJson(text);
    const events = isObject(page) ? page['events'] : undefined;
    if (events === undefined || !isArray(events) || events.length === 0) return `the service shows no entry ${next}`;
    return events.slice(0, limit);
  } catch (error) {
    // A service that is down contradicts nothing; one that says that it was changed does.
    if (error instanceof ApiError && error.status === 500) return `entry ${next} is not shown: ${error.detail}`;
    throw error;
  }
}

function checkLine(
  line: Json,
  sequence: number,
  { order, chain, count }: { readonly order: EntryOrder; readonly chain: KeyChain; readonly count: number },
): { readonly hash: Hash } | { readonly fault: string } {
  const { entry, leaf, openings } = isObject(line) ? line : NOTHING;
  if (entry === undefined || !isObject(entry) || typeof leaf !== 'string' || !isObject(openings)) {
    return { fault: 'it has no entry, leaf and openings' };
  }
  const text = canonicalOf({ entry, leaf, openings });
  const checked = text === null ? 'it has no canonical form' : checkEntry({ entry, leaf, openings }, text);
  if (typeof checked === 'string') return { fault: checked };
  if (checked.sequence !== sequence) return { fault: `it has sequence ${checked.sequence}` };
  const hash = hashOfBase64(leaf);
  if (hash === null || checked.leaf !== hash) return { fault: 'its leaf is not the hash of its entry' };
  const disorder = order.add(entry, checked, count) ?? chain.add(entry, sequence);
  return disorder === null ? { hash } : { fault: disorder };
}

const NOTHING: JsonObject = {};

function canonicalOf(line: JsonObject): string | null {
  try {
    return canonicalText(line);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
