/**
 * What reading found out about commits, in memory: commits never change, so these answers hold for ever.
 *
 * Must stay true: every cache is bounded in memory, whatever is in a repository.
 */
import { LRUCache } from 'lru-cache';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import {
  KNOWN_APART_MAX,
  KNOWN_FOLDERS_ENTRIES_MAX,
  KNOWN_PATH_COMMITS_MAX,
  KNOWN_PUSHES_BYTES_MAX,
} from '../../core/kernel/limits.ts';
import type { Apart } from '../../core/ports/object-history.ts';
import type { ApartContext } from '../../core/use-cases/reading/apart.ts';
import type { KnownFolder, KnownFolders } from '../../core/use-cases/reading/last-commits.ts';
import type { KnownPathHistories, KnownPathHistory } from '../../core/use-cases/reading/list-commits-of-path.ts';
import type { KnownPushes, PushedCommits } from '../../core/use-cases/reading/pushes-of-commits.ts';

export interface KnownAnswers {
  readonly knownFolders: KnownFolders;
  readonly knownPathHistories: KnownPathHistories;
  readonly knownApart: ApartContext['knownApart'];
  readonly knownPushes: KnownPushes;
}

/** What a repository takes beside the marks of its commits. */
const EMPTY_BYTES = 16_384;

export function createKnownAnswers(): KnownAnswers {
  const folders = new LRUCache<string, KnownFolder>({
    maxSize: KNOWN_FOLDERS_ENTRIES_MAX,
    sizeCalculation: ({ entries }) => entries.size + 1,
  });
  const histories = new LRUCache<string, KnownPathHistory>({
    maxSize: KNOWN_PATH_COMMITS_MAX,
    sizeCalculation: ({ ids }) => ids.length + 1,
  });
  const pushes = new LRUCache<RepositoryId, PushedCommits>({
    maxSize: KNOWN_PUSHES_BYTES_MAX,
    sizeCalculation: ({ marks }) => marks.memoryBytes + EMPTY_BYTES,
  });
  const apart = new LRUCache<string, Apart>({ max: KNOWN_APART_MAX });
  return {
    knownFolders: { get: (key) => folders.get(key), set: (key, folder) => void folders.set(key, folder) },
    knownPathHistories: { get: (key) => histories.get(key), set: (key, history) => void histories.set(key, history) },
    knownPushes: {
      get: (repository) => pushes.get(repository),
      set: (repository, pushed) => void pushes.set(repository, pushed),
      underWay: new Map(),
    },
    knownApart: { get: (key) => apart.get(key), set: (key, counts) => void apart.set(key, counts) },
  };
}
