/** Limits that several files of this folder share. */

/**
 * Deliveries of one webhook in memory; the others wait in the read model. Internal: further deliveries wait in the read
 * model.
 */
export const WEBHOOK_WINDOW_DELIVERIES_MAX = 100;
