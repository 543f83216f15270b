/** Limits that several files of this folder share. */
import { KIB } from '../../core/kernel/byte-units.ts';

/** A client that sends less than this a second, over this long, is cut; only the time that the server waits counts. */
export const PUSH_BYTES_PER_SECOND_MIN = 4 * KIB;
export const PUSH_PACE_SPAN_MS = 60_000;
