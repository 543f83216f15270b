/**
 * Finds whether a repository's layers hold more than its tips reach (core/ports/layer-drops.ts): git counts both.
 *
 * Invariants: it says no only if the counts are equal, of the layers that it was asked about. These hold all that the
 * tips reach, so equal counts mean equal objects.
 */
import { LRUCache } from 'lru-cache';
import { countedCache } from '../../../core/kernel/shown-caches.ts';
import type { LayerCounts } from '../../../core/ports/layer-drops.ts';
import type { CommittedObjects } from '../../../core/ports/object-database.ts';
import { viewOf } from '../cache/cache-folder.ts';
import type { LayerCache } from '../cache/layer-cache.ts';
import { lines } from '../packs/git-objects.ts';
import { reachedCount } from '../packs/reachable-sets.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';

/** How many repositories are remembered. Internal: the layers of a forgotten repository are counted again. */
const REMEMBERED_MAX = 10_000;

export function createLayerCounts(git: Git, cache: Pick<LayerCache, 'acquire'>): LayerCounts['holdMore'] {
  /** At which revision the layers of a repository were found to hold nothing more. */
  const whole = countedCache(
    'git_layer_counts',
    'entries',
    new LRUCache<string, CommittedObjects['revision']>({ max: REMEMBERED_MAX }),
  );
  return async (objects, tips, signal) => {
    if (objects.layers.length === 0) return false;
    const { repository, revision, place } = objects;
    if (whole.get(repository) === revision) return false;
    const lease = await cache.acquire(objects);
    try {
      const view = viewOf(lease.folder, place.account);
      // Without tips git would print how it is used.
      const reached = tips.length === 0 ? 0 : await reachedCount(git, view, tips, { signal });
      if ((await objectCount(git, view, signal)) !== reached) return true;
      whole.set(repository, revision);
      return false;
    } finally {
      lease.release();
    }
  };
}

const LINE_FEED = 0x0a;

/** Counts the objects of all packs, each once: git sorts them and leaves out what it printed (git-cat-file(1)). */
async function objectCount(git: Git, view: ObjectView, signal: AbortSignal): Promise<number> {
  const args = ['cat-file', '--batch-all-objects', '--buffer', '--batch-check=%(objectname)'];
  const command: GitCommand = { args, view, signal };
  let count = 0;
  for await (const chunk of git.stream(command, lines([]))) {
    for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) count += 1;
  }
  return count;
}
