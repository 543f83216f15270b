/**
 * Reads many objects one after the other: what tips are, what tags lead to, the dates of commits.
 *
 * Invariants: others have the event loop in between, and a chain of tags is followed up to a bound only.
 */
import type { FoundTip, ObjectType } from '../../../core/git/objects.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { TAG_CHAIN_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import type { MaybePromise } from '../../../core/kernel/maybe-promise.ts';
import { createTurns, type Turns } from './event-loop-turns.ts';
import { parseCommitLinks, parseTag } from './object-parsing.ts';
import type { ObjectSource } from './object-source.ts';

/** How long reads in a row may block the event loop. */
const TURN_MS = 10;

/**
 * Reads the items one after the other. Parallel reads would gain little: most items are in memory, and the others lie
 * close together on the disk.
 */
export async function readInTurn<Item, Result>(
  items: readonly Item[],
  read: (item: Item) => MaybePromise<Result>,
  turns: Turns = createTurns(TURN_MS),
): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const item of items) {
    const result = read(item);
    results.push(result instanceof Promise ? await result : result);
    if (turns.isOver()) await turns.next();
  }
  return results;
}

type Target = { readonly id: ObjectId; readonly type: ObjectType };

/** Resolves with type and peeled id of each tip; null where there is no such object. */
export async function readTips(source: ObjectSource, ids: readonly ObjectId[]): Promise<readonly FoundTip[]> {
  // A push may set many refs to the same few tips, and to tags of the same tags.
  const known = new Map<ObjectId, FoundTip>();
  const targets = new Map<ObjectId, Target | null>();
  const targetOf = async (tag: ObjectId): Promise<Target | null> => {
    let target = targets.get(tag);
    if (target === undefined) {
      const object = await source.read(tag);
      target = object?.type === 'tag' ? parseTag(object.bytes) : null;
      targets.set(tag, target);
    }
    return target;
  };
  return readInTurn(ids, async (id) => {
    const tip = known.get(id) ?? (await readTip(source, id, targetOf));
    known.set(id, tip);
    return tip;
  });
}

/** Resolves with the committer's date of each of the commits. */
export async function readCommitSeconds(
  source: ObjectSource,
  ids: readonly ObjectId[],
): Promise<ReadonlyMap<ObjectId, number>> {
  const dated = await readInTurn([...new Set(ids)], async (id) => {
    const object = await source.read(id);
    return object?.type === 'commit' ? ([[id, parseCommitLinks(object.bytes).seconds]] as const) : [];
  });
  return new Map(dated.flat());
}

async function readTip(
  source: ObjectSource,
  id: ObjectId,
  targetOf: (tag: ObjectId) => Promise<Target | null>,
): Promise<FoundTip> {
  const type = await source.type(id);
  if (type === null) return null;
  if (type !== 'tag') return { id, type, peeled: null };
  let tag = id;
  for (let length = 1; length <= TAG_CHAIN_LENGTH_MAX; length += 1) {
    const target = await targetOf(tag);
    if (target === null) return null;
    if (target.type !== 'tag') return { id, type: 'tag', peeled: target };
    tag = target.id;
  }
  return 'tag-too-deep';
}
