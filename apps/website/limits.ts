/** Limits that several files of this folder share. */
import { KIB } from '../../core/kernel/byte-units.ts';

/** The body of a form of the website. */
export const FORM_BYTES_MAX = 64 * KIB;
