/**
 * Questions about objects that lead to others: where a tag ends, which commit comes before which.
 *
 * Must stay true: an answer given in process is exact; a walk that would take long is left to git.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { ObjectType, Tip } from '../../core/ports/object-database.ts';
import { parseCommitLinks, parseTag } from './packs/object-parsing.ts';
import type { ObjectSource } from './packs/object-source.ts';

/** Tags of tags of tags: deeper ones are answered as if they were not there. */
const TAG_DEPTH_MAX = 1_000;
/** Commits that `isAncestor` looks at in process: about as long as starting git takes. */
const WALKED_COMMITS_MAX = 256;

/** Reads in a row before others get their turn on the event loop. */
const READS_A_TURN = 200;

/** One after the other: what is in memory answers at once, and what is not lies close together. */
export async function inTurn<Item, Result>(
  items: readonly Item[],
  read: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const item of items) {
    results.push(await read(item));
    if (results.length % READS_A_TURN === 0) await nextTurn();
  }
  return results;
}

/** Type and peeled id of each; null where there is no such object. */
export async function readTips(source: ObjectSource, ids: readonly ObjectId[]): Promise<readonly (Tip | null)[]> {
  // A push may set many refs to the same few tips.
  const known = new Map<ObjectId, Tip | null>();
  return inTurn(ids, async (id) => {
    const tip = known.get(id) ?? (await readTip(source, id));
    known.set(id, tip);
    return tip;
  });
}

async function readTip(source: ObjectSource, id: ObjectId): Promise<Tip | null> {
  const info = await source.info(id);
  if (info === null) return null;
  if (info.type !== 'tag') return { id, type: info.type, peeled: null };
  const peeled = await peel(source, id);
  return peeled === null ? null : { id, type: 'tag', peeled };
}

async function peel(
  source: ObjectSource,
  tag: ObjectId,
): Promise<{ readonly id: ObjectId; readonly type: ObjectType } | null> {
  let id = tag;
  for (let depth = 0; depth < TAG_DEPTH_MAX; depth += 1) {
    const object = await source.read(id);
    const target = object?.type === 'tag' ? parseTag(object.bytes) : null;
    if (target === null) return null;
    if (target.type !== 'tag') return target;
    id = target.id;
  }
  return null;
}

/**
 * Whether `ancestor` is reached from `descendant` (a commit reaches itself); null when the question is left to
 * git. Walks newest first, without guessing from dates, so it ends only by finding it or by running out.
 */
export async function isAncestorNearby(
  source: ObjectSource,
  ancestor: ObjectId,
  descendant: ObjectId,
): Promise<boolean | null> {
  if (ancestor === descendant) return true;
  const seen = new Set<ObjectId>([descendant]);
  let pending: { readonly id: ObjectId; readonly seconds: number; readonly parents: readonly ObjectId[] }[] = [];
  const add = async (id: ObjectId) => {
    const object = await source.read(id);
    if (object?.type === 'commit') pending.push({ id, ...parseCommitLinks(object.bytes) });
  };
  await add(descendant);
  for (let walked = 0; pending.length > 0; walked += 1) {
    if (walked >= WALKED_COMMITS_MAX) return null;
    const newest = pending.reduce((a, b) => (b.seconds > a.seconds ? b : a));
    pending = pending.filter((commit) => commit !== newest);
    for (const parent of newest.parents) {
      if (parent === ancestor) return true;
      if (seen.has(parent)) continue;
      seen.add(parent);
      await add(parent);
    }
  }
  return false;
}
