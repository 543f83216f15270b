/** Limits that several files of this folder share. */

/** Deliveries that wait for an hour fall due in groups of so many, spread over it evenly. */
export const WEBHOOK_BUDGET_GROUP = 100;
/** How often an account whose pushes wait for room is looked at: at first, and at last while there is none. */
export const WEBHOOK_ROOM_LOOK_FIRST_MS = 5_000;
export const WEBHOOK_ROOM_LOOK_LAST_MS = 60_000;
