/** Limits that several files of this folder share. */

/**
 * When a compaction that drops objects is tried again after a failure: it may have read the whole repository. Internal:
 * it is the pace of background work.
 */
export const DROPPING_RETRY_MS = 6 * 60 * 60_000;
