/**
 * Reads many commits with little memory.
 *
 * Invariants: few commits are read at a time, because a message may take up to `COMMIT_BYTES_MAX` until the caller cuts
 * it. So the caller keeps no commit as it comes.
 */
import type { Commit } from '../git/objects.ts';
import type { ObjectId } from '../kernel/ids.ts';
import type { ObjectReader } from './object-database.ts';

const UNCUT_COMMITS_AT_ONCE = 10;

/** Yields each id with its commit, in the order of the ids; null for an object that is missing or no commit. */
export async function* readCommits(
  reader: Pick<ObjectReader, 'commits'>,
  ids: readonly ObjectId[],
): AsyncGenerator<readonly [ObjectId, Commit | null], void, undefined> {
  for (let at = 0; at < ids.length; at += UNCUT_COMMITS_AT_ONCE) {
    const some = ids.slice(at, at + UNCUT_COMMITS_AT_ONCE);
    const commits = await reader.commits(some);
    for (const [index, id] of some.entries()) yield [id, commits[index] ?? null];
  }
}
