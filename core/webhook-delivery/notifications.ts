/**
 * The webhook events that each ref update of a push makes, and their ids.
 *
 * Invariants: an id is derived from what it names, so a replay makes the same ids and no second delivery.
 */
import type { DerivedIds, EventId, WebhookDeliveryId, WebhookId } from '../kernel/ids.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type { StoredRefUpdate } from '../repository/events.ts';

/** Refs of one push that webhooks are notified of: the first ones in the push's own order. */
export const WEBHOOK_PUSH_REFS_MAX = 1_000;

export type RefEventKind = Exclude<WebhookEventKind, 'ping'>;

const BRANCHES = 'refs/heads/';
const TAGS = 'refs/tags/';

/** Returns the type and the short name of a branch or a tag; null for other refs, such as notes. */
export function shortRef(ref: string): { readonly type: 'branch' | 'tag'; readonly name: string } | null {
  if (ref.startsWith(BRANCHES)) return { type: 'branch', name: ref.slice(BRANCHES.length) };
  if (ref.startsWith(TAGS)) return { type: 'tag', name: ref.slice(TAGS.length) };
  return null;
}

/** Returns the events that one ref update makes, in the order in which they are delivered. */
export function eventsOfUpdate({ ref, kind }: Pick<StoredRefUpdate, 'ref' | 'kind'>): readonly RefEventKind[] {
  if (shortRef(ref) === null) return [];
  switch (kind) {
    case 'create':
      return ['create', 'push'];
    case 'fast-forward':
    case 'force-push':
      return ['push'];
    case 'delete':
      return ['delete'];
  }
}

/** One event that a push makes for one ref. */
export interface RefNotification {
  readonly update: StoredRefUpdate;
  readonly kind: RefEventKind;
}

/** Returns what a push makes, in the order in which it is delivered: those of its first branches and tags. */
export function notificationsOf(
  updates: readonly StoredRefUpdate[],
  refsMax = WEBHOOK_PUSH_REFS_MAX,
): readonly RefNotification[] {
  return updates
    .filter((update) => shortRef(update.ref) !== null)
    .slice(0, refsMax)
    .flatMap((update) => eventsOfUpdate(update).map((kind) => ({ update, kind })));
}

/** Returns the id of the event of this kind that a `RefsUpdated` makes for one ref. */
export function eventIdOf(ids: DerivedIds, refsUpdated: EventId, kind: RefEventKind, ref: string): EventId {
  return ids.derive<EventId>(refsUpdated, `${kind} ${ref}`);
}

export function deliveryIdOf(
  ids: DerivedIds,
  eventId: EventId,
  webhookId: WebhookId,
  kind: WebhookEventKind,
): WebhookDeliveryId {
  return ids.derive<WebhookDeliveryId>(eventId, `${webhookId} ${kind}`);
}
