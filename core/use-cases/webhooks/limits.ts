/** Limits that several files of this folder share. */

/**
 * Deliveries that wait for an hour fall due in groups of this many, spread over it evenly. Internal: it is how waiting
 * deliveries are spread over an hour.
 */
export const WEBHOOK_BUDGET_GROUP = 100;
/**
 * How often an account whose pushes wait for room is looked at: at first, and at last while there is none. Internal: it
 * is the pace of background work.
 */
export const WEBHOOK_ROOM_LOOK_FIRST_MS = 5_000;
export const WEBHOOK_ROOM_LOOK_LAST_MS = 60_000;
