/** Limits that several files of this folder share. */
import { KIB, MIB } from '../../../core/kernel/byte-units.ts';

/** Bytes of a README's markup below a folder. Internal: the page of the file has all of it. */
export const PAGE_WHOLE_BYTES_MAX = 256 * KIB;

/** The body of a form with the text of a file, whose line ends browsers send as two bytes, and with a message. */
export const WRITING_FORM_BYTES_MAX = 2 * MIB + 128 * KIB;

/** The body of a form with files, all of which wait in memory. */
export const UPLOAD_FORM_BYTES_MAX = 16 * MIB;

/**
 * The bytes of names in a link that a page can do without; longer ones would fill it. Internal: such a page is reached
 * by its address.
 */
export const SPARE_LINK_BYTES_MAX = 1_000;

/** Bytes of a page's markup for what a search found, beside its form; the rest is on further pages. */
export const FOUND_BYTES_MAX = 30_000;
