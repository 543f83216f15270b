/**
 * What the dispatcher knows of one webhook with deliveries that are due: a window of them, and what goes next.
 *
 * Must stay true: a window leaves out whole tails only, so that what it holds goes before what it left out; first attempts
 * of one repository stand in their order.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId, RepositoryId, Timestamp, WebhookDeliveryId, WebhookId } from '../../core/kernel/ids.ts';
import { WEBHOOK_WINDOW_DELIVERIES_MAX } from '../../core/kernel/limits.ts';
import type { DueDeliveryRow } from '../../core/ports/read-models.ts';

export interface Running {
  readonly row: DueDeliveryRow;
  /** Where it fell due again meanwhile. */
  heardAt: LogPosition;
}

/** What is known of a webhook with deliveries that are due. */
export interface Lane {
  readonly webhook: WebhookId;
  readonly account: AccountId;
  receiver: string;
  /** First attempts in their order, then others. */
  window: DueDeliveryRow[];
  /** Whether the read model may have more than the window, of first attempts and of others. */
  moreFirsts: boolean;
  moreOthers: boolean;
  /** Whether an attempt ended since the window was read: reading it again can tell more. */
  moved: boolean;
  /** How far the read model must be before it is asked. */
  position: LogPosition;
  reading: boolean;
  stale: boolean;
  /** When the window is to be read again after a fault. */
  readAt: Timestamp | null;
  /** Deliveries that are left alone until then: an attempt failed by a fault of ours, or another clock goes before. */
  readonly held: Map<WebhookDeliveryId, Timestamp>;
  readonly running: Map<WebhookDeliveryId, Running>;
}

export const NOWHERE = 0n as LogPosition;

export function newLane(webhook: WebhookId, account: AccountId): Lane {
  return {
    ...{ webhook, account, receiver: webhook, window: [], moreFirsts: false, moreOthers: false, moved: false },
    ...{ position: NOWHERE, reading: false, stale: false, readAt: null, held: new Map(), running: new Map() },
  };
}

/** Whether the window already leaves out some of this sort, and holds some: it is read again when it runs dry of them. */
export function isLeftOut({ window, moreFirsts, moreOthers }: Lane, first: boolean): boolean {
  return (first ? moreFirsts : moreOthers) && window.some(({ isFirst }) => isFirst === first);
}

/** Whether reading again brings more than a few. */
export function runsDry({ window, moreFirsts, moreOthers }: Lane): boolean {
  const firsts = window.filter(({ isFirst }) => isFirst).length;
  const few = WEBHOOK_WINDOW_DELIVERIES_MAX / 2;
  return (moreFirsts && firsts <= few) || (moreOthers && window.length - firsts <= few);
}

/** Takes the window as it was read; what is under way was begun by what was known then. */
export function fill(lane: Lane, found: readonly DueDeliveryRow[]): void {
  lane.window = found.filter(({ id }) => !lane.running.has(id));
  const firsts = found.filter(({ isFirst }) => isFirst).length;
  lane.moreFirsts = firsts >= WEBHOOK_WINDOW_DELIVERIES_MAX;
  lane.moreOthers = found.length - firsts >= WEBHOOK_WINDOW_DELIVERIES_MAX;
  const there = new Set(lane.window.map(({ id }) => id));
  for (const id of lane.held.keys()) if (!there.has(id)) lane.held.delete(id);
}

/** An attempt at it ended. */
export function leave(lane: Lane, { id }: DueDeliveryRow): void {
  lane.running.delete(id);
  lane.moved = true;
}

/** A first attempt stands before all that wait for it. */
export function putBack(lane: Lane, row: DueDeliveryRow): void {
  lane.window = row.isFirst ? [row, ...lane.window] : [...lane.window, row];
}

/** What is due and not held up by an earlier first attempt, or a fault. */
export function nextOf(lane: Lane, now: Timestamp): DueDeliveryRow | null {
  const next = startable(lane).find(({ id, isDue }) => isDue && (lane.held.get(id) ?? now) <= now);
  return next ?? null;
}

/** The first attempts that are the next of their repository, and everything else. */
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
