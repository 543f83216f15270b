/**
 * Updates the stored order of the default branch when its tip moves.
 *
 * Invariants: the result is exactly the order of `git log` from the new tip, however it was computed.
 */
import { type OrderUpdate, updateOrder } from '../../core/git/history/commit-order.ts';
import type { OrderCommit } from '../../core/git/history/commit-queue.ts';
import type { StoredOrder } from '../../core/git/history/stored-commits.ts';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { HistoryReader } from './git-reading.ts';
import { TooMuchWork } from './work-bounds.ts';

export type OrderChange =
  | { readonly kind: 'keep' }
  | {
      readonly kind: 'replace';
      /** The number of commits, counted from the root's end, that keep their place. */
      readonly kept: number;
      /** The commits from the new tip to the kept ones, newest first. */
      readonly ids: readonly ObjectId[];
    };

export interface TipChange {
  readonly reader: HistoryReader;
  readonly oldTip: ObjectId | null;
  readonly oldCommits: number;
  readonly newTip: ObjectId | null;
  /** The new commits of this batch, if they are held in memory; all others have a row. */
  readonly newCommits: readonly OrderCommit[];
  readonly stored: StoredOrder;
  /** More commits than this to put in order throw `TooMuchWork`. */
  readonly commitsMax: number;
}

/**
 * If more commits than this were gained or dropped, walking the whole branch is no more work. Internal: both ways give
 * the same order.
 */
const MOVED_COMMITS_MAX = 20_000;

const LOADED_AT_ONCE = 2_000;

export async function orderChange(change: TipChange): Promise<OrderChange> {
  const { oldTip, newTip } = change;
  if (newTip === oldTip) return { kind: 'keep' };
  if (newTip === null) return { kind: 'replace', kept: 0, ids: [] };
  if (oldTip === null) return rebuilt(change, newTip);
  const update = await updatedOrder(change, oldTip, newTip);
  switch (update?.kind) {
    case 'prepend':
      return { kind: 'replace', kept: change.oldCommits, ids: update.commits };
    case 'splice':
      return { kind: 'replace', kept: change.oldCommits - update.replaced, ids: update.commits };
    case 'rebuild':
    case undefined:
      return rebuilt(change, newTip);
  }
}

/** Resolves null if walking the whole branch takes less work or memory than comparing the two tips. */
async function updatedOrder(change: TipChange, oldTip: ObjectId, newTip: ObjectId): Promise<OrderUpdate | null> {
  try {
    const moved = await movedCommits(change, oldTip, newTip);
    return moved === null ? null : await updateOrder({ oldTip, newTip, ...moved }, change.stored);
  } catch (error) {
    if (error instanceof TooMuchWork) return null;
    throw error;
  }
}

async function rebuilt({ reader, commitsMax }: TipChange, tip: ObjectId): Promise<OrderChange> {
  const ids: ObjectId[] = [];
  for await (const id of reader.walk({ include: [tip], exclude: [], limit: commitsMax + 1 })) ids.push(id);
  if (ids.length > commitsMax) throw new TooMuchWork(`More than ${commitsMax} commits to order`);
  return { kind: 'replace', kept: 0, ids };
}

interface Moved {
  readonly gained: readonly OrderCommit[];
  readonly dropped: readonly ObjectId[];
}

/** Finds what the new tip reaches and the old does not, and the reverse; null if that is too much. */
async function movedCommits(change: TipChange, oldTip: ObjectId, newTip: ObjectId): Promise<Moved | null> {
  const direct = directlyGained(change.newCommits, oldTip, newTip);
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

/** The usual push: all new commits descend from the old tip only. Returns null in any other case. */
function directlyGained(
  newCommits: readonly OrderCommit[],
  oldTip: ObjectId,
  newTip: ObjectId,
): readonly OrderCommit[] | null {
  const byId = new Map(newCommits.map((commit) => [commit.id, commit]));
  const reached = new Set([newTip]);
  const gained: OrderCommit[] = [];
  // Iterating a set also visits the ids that the loop adds.
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

async function load({ newCommits, stored }: TipChange, ids: readonly ObjectId[]): Promise<readonly OrderCommit[]> {
  const byId = new Map(newCommits.map((commit) => [commit.id, commit]));
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
