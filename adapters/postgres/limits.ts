/** Limits that several files of this folder share. */

/**
 * A node whose clock differs from its database's by more than this appends nothing. Internal: only a machine with a
 * wrong clock reaches it.
 */
export const CLOCK_DIFFERENCE_MS_MAX = 60_000;
