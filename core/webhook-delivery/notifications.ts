/**
 * What webhooks are told of a push: which events a moved ref makes, and by which ids.
 *
 * Must stay true: an id follows from what it names, so that a replay tells nobody anything twice.
 */
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type { EventId, WebhookDeliveryId, WebhookId } from '../kernel/ids.ts';
import type { Ids } from '../ports/clock.ts';
import type { StoredRefUpdate } from '../repository/events.ts';

export type RefEventKind = Exclude<WebhookEventKind, 'ping'>;

const BRANCHES = 'refs/heads/';
const TAGS = 'refs/tags/';

/** A branch or a tag by its short name; null for other refs, such as notes. */
export function shortRef(ref: string): { readonly type: 'branch' | 'tag'; readonly name: string } | null {
  if (ref.startsWith(BRANCHES)) return { type: 'branch', name: ref.slice(BRANCHES.length) };
  if (ref.startsWith(TAGS)) return { type: 'tag', name: ref.slice(TAGS.length) };
  return null;
}

/** The events that one moved ref makes, in the order they are told. */
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

/** The id of the event that a `RefsUpdated` makes of one ref. */
export function eventIdOf(ids: Pick<Ids, 'derive'>, refsUpdated: EventId, kind: RefEventKind, ref: string): EventId {
  return ids.derive<EventId>(refsUpdated, `${kind} ${ref}`);
}

export function deliveryIdOf(
  ids: Pick<Ids, 'derive'>,
  eventId: EventId,
  webhookId: WebhookId,
  kind: WebhookEventKind,
): WebhookDeliveryId {
  return ids.derive<WebhookDeliveryId>(eventId, `${webhookId} ${kind}`);
}
