/**
 * The slots of git processes that read for pages and the API: how many of each kind run at the same time, on a node and
 * for one account. Further ones wait.
 *
 * Invariants: none is a slot of those that fetches and pushes share, so an account whose fetches hold all of its own
 * still reads, and whoever reads much holds up no push.
 */
import { createFairSlots, type FairSlots } from '../../core/kernel/fair-slots.ts';

/** Diffs that a node makes at the same time: in all, and for one account. Internal: further diffs wait. */
const DIFFS_AT_ONCE_MAX = 4;
export const DIFFS_PER_ACCOUNT_MAX = 2;
/**
 * Files of which a node finds at the same time who brought their lines: in all, and for one account. Internal: others
 * wait.
 */
const BLAMES_AT_ONCE_MAX = 4;
export const BLAMES_PER_ACCOUNT_MAX = 2;
/** Texts of commits that a node makes at the same time: in all, and for one account. Internal: further texts wait. */
const TEXTS_AT_ONCE_MAX = 4;
const TEXTS_PER_ACCOUNT_MAX = 2;
/** Searches in files that run at the same time: on a node, and for one account. Internal: further ones wait. */
const SEARCHES_AT_ONCE_MAX = 4;
export const SEARCHES_PER_ACCOUNT_MAX = 2;
/**
 * Lists of paths that are made at the same time, each in some 50 MiB of memory: on a node, and for one account.
 * Internal: further ones wait.
 */
const FILE_LISTINGS_AT_ONCE_MAX = 2;
const FILE_LISTINGS_PER_ACCOUNT_MAX = 1;
/**
 * Concurrent walks of git over commits, for lists of them and for the read models: in all, and for one account.
 * Internal: further walks wait.
 */
const WALKS_AT_ONCE_MAX = 16;
const WALKS_PER_ACCOUNT_MAX = 4;
/** Other git processes that read for pages at the same time: in all, and for one account. Internal: others wait. */
const HISTORY_READS_AT_ONCE_MAX = 8;
const HISTORY_READS_PER_ACCOUNT_MAX = 4;

export interface ReadingSlots {
  readonly diffs: FairSlots;
  readonly blames: FairSlots;
  readonly texts: FairSlots;
  readonly searches: FairSlots;
  readonly listings: FairSlots;
  readonly walks: FairSlots;
  readonly others: FairSlots;
}

/** Shared by all readers of a node. */
export function createReadingSlots(): ReadingSlots {
  return {
    diffs: createFairSlots({ slots: DIFFS_AT_ONCE_MAX, slotsPerKey: DIFFS_PER_ACCOUNT_MAX }),
    blames: createFairSlots({ slots: BLAMES_AT_ONCE_MAX, slotsPerKey: BLAMES_PER_ACCOUNT_MAX }),
    texts: createFairSlots({ slots: TEXTS_AT_ONCE_MAX, slotsPerKey: TEXTS_PER_ACCOUNT_MAX }),
    searches: createFairSlots({ slots: SEARCHES_AT_ONCE_MAX, slotsPerKey: SEARCHES_PER_ACCOUNT_MAX }),
    listings: createFairSlots({ slots: FILE_LISTINGS_AT_ONCE_MAX, slotsPerKey: FILE_LISTINGS_PER_ACCOUNT_MAX }),
    walks: createFairSlots({ slots: WALKS_AT_ONCE_MAX, slotsPerKey: WALKS_PER_ACCOUNT_MAX }),
    others: createFairSlots({ slots: HISTORY_READS_AT_ONCE_MAX, slotsPerKey: HISTORY_READS_PER_ACCOUNT_MAX }),
  };
}
