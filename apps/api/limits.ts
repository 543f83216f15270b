/** Limits that several files of this folder share. */

/**
 * Entries of an account's log on one page of the API, unless the client asks for another number. Internal: it is a
 * default.
 */
export const ENTRIES_PAGE_LIMIT_DEFAULT = 100;
/** Entries of an account's log that a client may ask for on one page of the API. */
export const ENTRIES_PAGE_LIMIT_MAX = 1_000;
