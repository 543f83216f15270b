/**
 * Compares the log with the trees of accounts' logs and with the checkpoints that were signed of them: finds an event
 * that was changed, removed or inserted in the database, and names it.
 *
 * Invariants: an event counts as unchanged only if its leaf, hashed again from the log, is the one that the account's
 * tree got when the event was appended. Checkpoints lie apart from the database, so that a tree that was made again
 * over a changed log is found as well. Memory grows with the number of accounts.
 */
import { entryHash } from '../../audit/entry.ts';
import { type Growing, grow, NO_TREE, rangeHash, subtreesOf } from '../../audit/tree.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { AccountLogReader, EntryPlace, Hash } from '../../ports/account-log.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import { isEntryOf } from '../../runtime/log-time.ts';
import { readStored, storedCheckpoints } from '../auditing/checkpoints.ts';
import { isChanged } from './changed.ts';

export interface TreeCheckContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly digest: Digest;
  /** Not necessarily caught up; null if no server has made the model yet. */
  readonly accountLogs: Pick<AccountLogReader, 'treeHashes' | 'entryPlaces' | 'accountLogs'> | null;
  /** The platform's store. */
  readonly store: LayerStore;
}

export interface TreeCheck {
  /** Adds the next event of the log. */
  add(event: RecordedEvent): void;
  /** Compares what was added. Reports what is wrong, the account's entries in their order. */
  finish(): Promise<void>;
}

/** What the log shows of an account so far. */
interface Seen {
  tree: Growing;
  /** The root at the size of the stored checkpoint and at that of the model, when the tree had it. */
  readonly roots: Map<number, Hash>;
}

const PAGE = 1_000;

export interface TreeReports {
  readonly fault: (text: string) => void;
  /** Called for a checkpoint of more entries than the log has: a log that was restored to an earlier state has one. */
  readonly newerCheckpoint: (text: string) => void;
}

/** Reads the sizes to compare; then add every event of the log. */
export async function createTreeCheck(context: TreeCheckContext, report: TreeReports): Promise<TreeCheck> {
  const { digest, store } = context;
  const signed = await readCheckpoints(store);
  const modelled = await modelSizes(context);
  const accounts = new Map<AccountId, Seen>();
  return {
    add(event) {
      const { accountId: account } = event;
      if (account === null || !isEntryOf(account, event)) return;
      const seen = accounts.get(account) ?? { tree: NO_TREE, roots: new Map<number, Hash>() };
      accounts.set(account, seen);
      seen.tree = grow(digest, seen.tree, entryHash(digest, event), () => undefined);
      const { size } = seen.tree;
      const wanted = size === signed.get(account)?.size || size === modelled.get(account);
      if (wanted) seen.roots.set(size, rangeHash(digest, seen.tree.hashes));
    },
    async finish() {
      for (const account of new Set([...accounts.keys(), ...signed.keys(), ...modelled.keys()])) {
        const seen = accounts.get(account) ?? { tree: NO_TREE, roots: new Map<number, Hash>() };
        await compareWithModel(context, account, seen, modelled.get(account) ?? 0, report.fault);
        const checkpoint = signed.get(account);
        if (checkpoint === undefined) continue;
        const { size } = checkpoint;
        const root = seen.roots.get(size);
        if (root === checkpoint.root) continue;
        const signedWith = `The log of account ${account} was signed with ${size} entries, and`;
        if (root === undefined) report.newerCheckpoint(`${signedWith} has only ${seen.tree.size} entries`);
        else report.fault(`${signedWith} has another root at that size`);
      }
    },
  };
}

async function readCheckpoints(
  store: LayerStore,
): Promise<ReadonlyMap<AccountId, { readonly size: number; readonly root: Hash }>> {
  const signed = new Map<AccountId, { readonly size: number; readonly root: Hash }>();
  for await (const { account, size } of storedCheckpoints(store)) {
    if (size <= (signed.get(account)?.size ?? 0)) continue;
    const stored = await readStored(store, account, size);
    if (stored !== null) signed.set(account, { size, root: stored.root });
  }
  return signed;
}

interface LogSize {
  readonly account: AccountId;
  readonly size: number;
}

async function modelSizes({ accountLogs }: TreeCheckContext): Promise<ReadonlyMap<AccountId, number>> {
  const sizes = new Map<AccountId, number>();
  for (let after: AccountId | null = null; accountLogs !== null; ) {
    const page: readonly LogSize[] = await accountLogs.accountLogs(after, PAGE);
    for (const { account, size } of page) sizes.set(account, size);
    after = page.at(-1)?.account ?? null;
    if (page.length < PAGE) break;
  }
  return sizes;
}

async function compareWithModel(
  context: TreeCheckContext,
  account: AccountId,
  seen: Seen,
  size: number,
  fault: (text: string) => void,
): Promise<void> {
  const { accountLogs, digest } = context;
  if (accountLogs === null || size === 0) return;
  const root = rangeHash(digest, await accountLogs.treeHashes(account, subtreesOf({ begin: 0, end: size })));
  if (seen.roots.get(size) === root) return;
  let named = 0;
  for (let from = 0; from < size; from += PAGE) {
    for (const place of await accountLogs.entryPlaces(account, null, { from, to: size, limit: PAGE })) {
      if (await reportChange(context, account, place, fault)) named += 1;
    }
  }
  if (named > 0) return;
  const { size: entries } = seen.tree;
  fault(`The log of account ${account} had ${size} entries, and ${entries} are there: an event was moved or inserted`);
}

/** Reports an entry that the log does not hold as it was appended. Returns whether it reported it. */
export async function reportChange(
  context: Pick<TreeCheckContext, 'events' | 'digest'>,
  account: AccountId,
  place: EntryPlace,
  fault: (text: string) => void,
): Promise<boolean> {
  const what = await whatChanged(context, account, place);
  if (what !== null) fault(`${place.stream} revision ${place.revision} (event ${place.eventId}) ${what}`);
  return what !== null;
}

/** Returns null if the log holds the entry as it was appended. */
async function whatChanged(
  { events, digest }: Pick<TreeCheckContext, 'events' | 'digest'>,
  account: AccountId,
  { stream, revision, position, leaf }: EntryPlace,
): Promise<string | null> {
  let event: RecordedEvent | undefined;
  try {
    [event] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
  } catch (error) {
    if (!isChanged(error)) throw error;
    return `cannot be read: ${error.message}`;
  }
  if (event === undefined || event.revision !== revision) return 'is not in the log any more';
  if (!isEntryOf(account, event)) return `was taken out of the log of account ${account}`;
  if (event.position !== position) return `was moved from position ${position} to ${event.position}`;
  return entryHash(digest, event) === leaf ? null : 'was changed after it was recorded';
}
