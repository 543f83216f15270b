/**
 * How the stored order of the default branch follows its tip.
 *
 * Must stay true: what comes out is exactly `git log` from the new tip, whichever way it was found.
 */
import { type OrderUpdate, updateOrder } from '../../core/git/history/commit-order.ts';
import type { OrderCommit } from '../../core/git/history/commit-queue.ts';
import type { StoredOrder } from '../../core/git/history/stored-commits.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { HistoryReader } from './git-reading.ts';
import { TooManyCommits } from './new-commits.ts';

export type OrderChange =
  | { readonly kind: 'keep' }
  | {
      readonly kind: 'replace';
      /** Commits at the root's end that stay. */
      readonly kept: number;
      /** Those before them, newest first. */
      readonly ids: readonly ObjectId[];
    };

export interface TipChange {
  readonly reader: HistoryReader;
  readonly oldTip: ObjectId | null;
  readonly oldCommits: number;
  readonly newTip: ObjectId | null;
  /** Commits that this batch brings, if they are held; others have their row. */
  readonly brought: readonly OrderCommit[];
  readonly stored: StoredOrder;
  /** Throws `TooManyCommits` when more than so many must be ordered anew; null: any number. */
  readonly commitsMax: number | null;
}

/** Beyond so many commits gained or dropped, walking the whole branch is no more work. */
const MOVED_COMMITS_MAX = 20_000;
const LOADED_AT_ONCE = 2_000;

export async function orderChange(change: TipChange): Promise<OrderChange> {
  const { oldTip, newTip } = change;
  if (newTip === oldTip) return { kind: 'keep' };
  if (newTip === null) return { kind: 'replace', kept: 0, ids: [] };
  if (oldTip === null) return rebuilt(change, newTip);
  const moved = await movedCommits(change, oldTip, newTip);
  if (moved === null) return rebuilt(change, newTip);
  const update: OrderUpdate = await updateOrder({ oldTip, newTip, ...moved }, change.stored);
  switch (update.kind) {
    case 'prepend':
      return { kind: 'replace', kept: change.oldCommits, ids: update.commits };
    case 'splice':
      return { kind: 'replace', kept: change.oldCommits - update.replaced, ids: update.commits };
    case 'rebuild':
      return rebuilt(change, newTip);
  }
}

async function rebuilt({ reader, commitsMax }: TipChange, tip: ObjectId): Promise<OrderChange> {
  const ids: ObjectId[] = [];
  const limit = commitsMax === null ? {} : { limit: commitsMax + 1 };
  for await (const id of reader.walk({ include: [tip], exclude: [], ...limit })) ids.push(id);
  if (commitsMax !== null && ids.length > commitsMax) throw new TooManyCommits(`More than ${commitsMax} to order`);
  return { kind: 'replace', kept: 0, ids };
}

interface Moved {
  readonly gained: readonly OrderCommit[];
  readonly dropped: readonly ObjectId[];
}

/** What the new tip reaches and the old does not, and the reverse; null when that is too much. */
async function movedCommits(change: TipChange, oldTip: ObjectId, newTip: ObjectId): Promise<Moved | null> {
  const direct = directlyGained(change.brought, oldTip, newTip);
  if (direct !== null) return { gained: direct, dropped: [] };
  const { reader } = change;
  // A tip that was forced away may have left storage since.
  const [old] = await reader.lookup([oldTip]);
  if (old === null || old === undefined) return null;
  const gained = await walked(reader, newTip, oldTip);
  const dropped = await walked(reader, oldTip, newTip);
  if (gained === null || dropped === null) return null;
  return { gained: await load(change, gained), dropped };
}

/** The usual push: everything new stands on the old tip alone. Null when it is not so. */
function directlyGained(
  brought: readonly OrderCommit[],
  oldTip: ObjectId,
  newTip: ObjectId,
): readonly OrderCommit[] | null {
  const byId = new Map(brought.map((commit) => [commit.id, commit]));
  const reached = new Set([newTip]);
  const gained: OrderCommit[] = [];
  // A set's iteration goes on through what is added meanwhile.
  for (const id of reached) {
    if (id === oldTip) continue;
    const commit = byId.get(id);
    if (commit === undefined) return null;
    gained.push(commit);
    for (const parent of commit.parents) reached.add(parent);
  }
  return reached.has(oldTip) ? gained : null;
}

async function walked(reader: HistoryReader, from: ObjectId, without: ObjectId): Promise<readonly ObjectId[] | null> {
  const ids: ObjectId[] = [];
  const limit = MOVED_COMMITS_MAX + 1;
  for await (const id of reader.walk({ include: [from], exclude: [without], limit })) ids.push(id);
  return ids.length === limit ? null : ids;
}

async function load({ brought, stored }: TipChange, ids: readonly ObjectId[]): Promise<readonly OrderCommit[]> {
  const byId = new Map(brought.map((commit) => [commit.id, commit]));
  const commits: OrderCommit[] = [];
  const unheld: ObjectId[] = [];
  for (const id of ids) {
    const commit = byId.get(id);
    if (commit === undefined) unheld.push(id);
    else commits.push(commit);
  }
  for (let at = 0; at < unheld.length; at += LOADED_AT_ONCE) {
    commits.push(...(await stored.commits(unheld.slice(at, at + LOADED_AT_ONCE))));
  }
  return commits;
}
