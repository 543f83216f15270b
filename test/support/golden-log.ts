/**
 * A small log in every form in which stores and files hold it, kept in test/golden. The first forms store
 * neither whether an event is a record event nor its place in its append; the second forms do.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type NewEvent, type StreamName, streamName } from '../../core/kernel/envelope.ts';
import { type EventId, timestamp, type Uuid, uuid } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { AppendRequest, EventStore } from '../../core/ports/event-store.ts';

export function goldenText(file: string): string {
  return readFileSync(path.join(import.meta.dirname, '..', 'golden', file), 'utf8');
}

function id<Id extends Uuid>(number: number): Id {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${number.toString(16).padStart(12, '0')}`);
}

function event(number: number, type: string, data: JsonObject, isRecord: boolean): NewEvent {
  return {
    id: id<EventId>(number),
    type,
    version: 1,
    accountId: id(0xa0),
    occurredAt: timestamp('2026-11-21T10:00:00.000Z'),
    actor: { kind: 'token', id: id(0xb0) },
    requestId: 'request-1',
    sourceAddressRef: null,
    causationId: null,
    isRecord,
    data,
  };
}

/** Appends of one event and of several, with record events and operational events. */
export const GOLDEN_APPENDS: readonly AppendRequest[] = [
  append(streamName('account', id(0xa0)), event(1, 'PlanChanged', { plan: 'PRO' }, true)),
  append(
    streamName('repository', id(0xc0)),
    event(2, 'DefaultBranchChanged', { default_branch: 'main' }, true),
    event(3, 'RepositoryClosed', {}, true),
  ),
  append(streamName('refUpdates', id(0xe0)), event(4, 'RefUpdatesPart', { updates: [] }, true)),
  append(
    streamName('webhookDelivery', id(0xd0)),
    event(5, 'WebhookDeliveryFailed', {}, false),
    event(6, 'WebhookRedelivered', {}, false),
  ),
];

function append(stream: StreamName, ...events: readonly NewEvent[]): AppendRequest {
  return { stream, expected: 'none', events };
}

export async function appendGolden(store: EventStore): Promise<void> {
  for (const request of GOLDEN_APPENDS) await store.append(request);
}

/**
 * For each event of a log of the second form: whether it is a record event, its index in its append, and the size of
 * the append.
 */
export const GOLDEN_PLACES: readonly (readonly [boolean, number, number])[] = GOLDEN_APPENDS.flatMap(({ events }) =>
  events.map(({ isRecord }, index) => [isRecord, index, events.length] as const),
);

/** The same for a log of the first form, in which every event counts as an append of its own. */
export const GOLDEN_PLACES_FIRST_FORM: typeof GOLDEN_PLACES = GOLDEN_PLACES.map(([isRecord]) => [isRecord, 0, 1]);
