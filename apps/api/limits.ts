/** Limits that several files of this folder share. */
import { MIB } from '../../core/kernel/byte-units.ts';

/**
 * Entries of an account's log on one page of the API, unless the client asks for another number. Internal: it is a
 * default.
 */
export const ENTRIES_PAGE_LIMIT_DEFAULT = 100;
/** Entries of an account's log that a client may ask for on one page of the API. */
export const ENTRIES_PAGE_LIMIT_MAX = 1_000;
/** Days of sign-ins on one page of the API, unless the client asks for another number. Internal: it is a default. */
export const SIGN_IN_DAYS_LIMIT_DEFAULT = 7;
/** Days of sign-ins that a client may ask for on one page: each may name 100 sign-ins and as many tokens. */
export const SIGN_IN_DAYS_LIMIT_MAX = 31;
/** The size of the JSON body of a push over the API, or of the JSON in one that is sent in parts. */
export const PUSH_BODY_BYTES_MAX = 8 * MIB;
/**
 * Memory for each byte of such a body: what it says is held beside it while its refs are changed. Internal: it is a
 * part of how the memory of a body is counted.
 */
export const PUSH_BODY_HELD_FACTOR = 4;
