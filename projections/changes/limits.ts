/** Limits that several files of this folder share. */

/**
 * How long a request is known that was counted as a change: no request appends its events over a longer time. Internal:
 * no request appends over a longer time.
 */
export const CHANGE_REQUEST_KNOWN_MS = 2 * 60 * 60_000;
