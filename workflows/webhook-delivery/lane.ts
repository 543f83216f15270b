/**
 * The dispatcher's state of one webhook with due deliveries: a window of them, and the choice of the next.
 *
 * Invariants: of first attempts, and of all others, a window leaves out only the last ones. So every delivery in it
 * goes before those of its kind that are left out. First attempts of one repository are in their order.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId, RepositoryId, Timestamp, WebhookDeliveryId, WebhookId } from '../../core/kernel/ids.ts';
import type { DueDeliveryRow } from '../../core/ports/due-deliveries.ts';
import { WEBHOOK_WINDOW_DELIVERIES_MAX } from './limits.ts';

export interface Running {
  readonly row: DueDeliveryRow;
  /** The position of the last event that made it due again while its attempt was running; `NO_POSITION` for none. */
  dueAgainAt: LogPosition;
}

/** The state of one webhook with due deliveries. */
export interface Lane {
  readonly webhook: WebhookId;
  readonly account: AccountId;
  receiver: string;
  /** First attempts in their order, then the others. */
  window: DueDeliveryRow[];
  /** Whether the read model may hold more than the window does: of first attempts, and of the others. */
  moreFirsts: boolean;
  moreOthers: boolean;
  /** Whether an attempt ended since the window was read, so that a new reading may return more. */
  attemptEnded: boolean;
  /** The position that the read model must have reached before it is queried. */
  position: LogPosition;
  reading: boolean;
  readAgain: boolean;
  /** When to read the window again after a failure. */
  readAt: Timestamp | null;
  /**
   * Deliveries that may not start before a time: after a failure inside this program, or because another clock is
   * ahead.
   */
  readonly pausedUntil: Map<WebhookDeliveryId, Timestamp>;
  readonly running: Map<WebhookDeliveryId, Running>;
}

export const NO_POSITION = 0n as LogPosition;

export function newLane(webhook: WebhookId, account: AccountId): Lane {
  return {
    webhook,
    account,
    receiver: webhook,
    window: [],
    moreFirsts: false,
    moreOthers: false,
    attemptEnded: false,
    position: NO_POSITION,
    reading: false,
    readAgain: false,
    readAt: null,
    pausedUntil: new Map(),
    running: new Map(),
  };
}

/**
 * Returns whether the window leaves out deliveries of this kind and still holds some; it is read again when they run
 * low.
 */
export function leavesOut({ window, moreFirsts, moreOthers }: Lane, first: boolean): boolean {
  return (first ? moreFirsts : moreOthers) && window.some(({ isFirst }) => isFirst === first);
}

/** Returns whether so few deliveries are left in the window that reading it again is worth while. */
export function runsLow({ window, moreFirsts, moreOthers }: Lane): boolean {
  const firsts = window.filter(({ isFirst }) => isFirst).length;
  const few = WEBHOOK_WINDOW_DELIVERIES_MAX / 2;
  return (moreFirsts && firsts <= few) || (moreOthers && window.length - firsts <= few);
}

/**
 * Sets the window to the rows that were read, without deliveries whose attempt is running. Drops the pauses of
 * deliveries that are not in the window.
 */
export function setWindow(lane: Lane, found: readonly DueDeliveryRow[]): void {
  lane.window = found.filter(({ id }) => !lane.running.has(id));
  const firsts = found.filter(({ isFirst }) => isFirst).length;
  lane.moreFirsts = firsts >= WEBHOOK_WINDOW_DELIVERIES_MAX;
  lane.moreOthers = found.length - firsts >= WEBHOOK_WINDOW_DELIVERIES_MAX;
  const there = new Set(lane.window.map(({ id }) => id));
  for (const id of lane.pausedUntil.keys()) if (!there.has(id)) lane.pausedUntil.delete(id);
}

/** Removes a delivery whose attempt ended from the running ones. */
export function endAttempt(lane: Lane, { id }: DueDeliveryRow): void {
  lane.running.delete(id);
  lane.attemptEnded = true;
}

/** Puts a delivery back into the window: a first attempt at the front, because later ones wait for it; others last. */
export function putBack(lane: Lane, row: DueDeliveryRow): void {
  lane.window = row.isFirst ? [row, ...lane.window] : [...lane.window, row];
}

/** Returns the next delivery that is due and blocked neither by an earlier first attempt nor by a pause. */
export function nextStartable(lane: Lane, now: Timestamp): DueDeliveryRow | null {
  const next = startable(lane).find(({ id, isDue }) => isDue && (lane.pausedUntil.get(id) ?? now) <= now);
  return next ?? null;
}

/** Returns the first attempts that are their repository's next, and all other attempts. */
function startable({ window, running }: Lane): readonly DueDeliveryRow[] {
  const taken = new Set<RepositoryId | null>();
  for (const { row } of running.values()) if (row.isFirst && row.repository !== null) taken.add(row.repository);
  return window.filter(({ isFirst, repository }) => {
    if (!isFirst || repository === null) return true;
    if (taken.has(repository)) return false;
    taken.add(repository);
    return true;
  });
}
