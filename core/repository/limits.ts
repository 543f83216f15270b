/** Limits that several files of this folder share. */

/** Layers that one event removes; each takes about 90 bytes of the event. */
export const LAYERS_REMOVED_AT_ONCE_MAX = 10_000;
