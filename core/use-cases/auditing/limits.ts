/** Limits that several files of this folder share. */
import { MIB } from '../../kernel/byte-units.ts';

/**
 * The length of the entries that a page, an export or a fold reads at a time, unless one alone is longer. Internal:
 * both ways give the same entries.
 */
export const ENTRIES_READ_LENGTH_MAX = 2 * MIB;
