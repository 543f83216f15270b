/** Limits that several files of this folder share. */

/** Commits that a client may name as the ends of its shallow clone, in one request. */
export const SHALLOW_LINES_MAX = 10_000;
