/**
 * What reading found out about commits, in memory: commits never change, so these answers hold for ever.
 *
 * Must stay true: every cache is bounded in memory, whatever is in a repository.
 */
import { LRUCache } from 'lru-cache';
import { KNOWN_APART_MAX, KNOWN_FOLDERS_ENTRIES_MAX, KNOWN_PATH_COMMITS_MAX } from '../../core/kernel/limits.ts';
import type { Apart } from '../../core/ports/object-history.ts';
import type { ApartContext } from '../../core/use-cases/reading/apart.ts';
import type { KnownFolder, KnownFolders } from '../../core/use-cases/reading/last-commits.ts';
import type { KnownPathHistories, KnownPathHistory } from '../../core/use-cases/reading/list-commits-of-path.ts';

export interface KnownAnswers {
  readonly knownFolders: KnownFolders;
  readonly knownPathHistories: KnownPathHistories;
  readonly knownApart: ApartContext['knownApart'];
}

export function createKnownAnswers(): KnownAnswers {
  const folders = new LRUCache<string, KnownFolder>({
    maxSize: KNOWN_FOLDERS_ENTRIES_MAX,
    sizeCalculation: ({ entries }) => entries.size + 1,
  });
  const histories = new LRUCache<string, KnownPathHistory>({
    maxSize: KNOWN_PATH_COMMITS_MAX,
    sizeCalculation: ({ ids }) => ids.length + 1,
  });
  const apart = new LRUCache<string, Apart>({ max: KNOWN_APART_MAX });
  return {
    knownFolders: { get: (key) => folders.get(key), set: (key, folder) => void folders.set(key, folder) },
    knownPathHistories: { get: (key) => histories.get(key), set: (key, history) => void histories.set(key, history) },
    knownApart: { get: (key) => apart.get(key), set: (key, counts) => void apart.set(key, counts) },
  };
}
