/**
 * Every event type that the service can write, by stream category: its versions, and whether it is a record event.
 *
 * Invariants: event names and stored bytes never change. A change of a type's form is a new version with an
 * upcaster, and test/golden keeps one JSON file of each version.
 */
import { accessTokenEventKinds } from './access-token/events.ts';
import { accountEventKinds } from './account/events.ts';
import { bucketErrorEventKinds } from './bucket-errors/events.ts';
import { claimEventKinds } from './claim/events.ts';
import { deviceSessionEventKinds } from './device-session/events.ts';
import { type EventKind, oldestWritten } from './kernel/decider.ts';
import { refUpdatesEventKinds, repositoryEventKinds } from './repository/events.ts';
import { signInEventKinds } from './sign-in/events.ts';
import { transferEventKinds, usageEventKinds } from './usage/events.ts';
import { webhookDeliveryEventKinds } from './webhook-delivery/events.ts';

export const EVENT_CATALOGUE: { readonly [category: string]: { readonly [type: string]: EventKind } } = {
  account: accountEventKinds,
  accessToken: accessTokenEventKinds,
  bucketErrors: bucketErrorEventKinds,
  deviceSession: deviceSessionEventKinds,
  email: claimEventKinds,
  refUpdates: refUpdatesEventKinds,
  repository: repositoryEventKinds,
  signIn: signInEventKinds,
  transfer: transferEventKinds,
  usage: usageEventKinds,
  username: claimEventKinds,
  webhookDelivery: webhookDeliveryEventKinds,
};

/** What the record of an account can hold: the categories of its streams, and the types of its entries. */
export const RECORD_CATEGORIES: ReadonlySet<string> = new Set(
  Object.entries(EVENT_CATALOGUE).flatMap(([category, kinds]) => (recordTypes(kinds).length === 0 ? [] : [category])),
);
export const RECORD_TYPES: ReadonlySet<string> = new Set(Object.values(EVENT_CATALOGUE).flatMap(recordTypes));

function recordTypes(kinds: { readonly [type: string]: EventKind }): readonly string[] {
  return Object.entries(kinds).flatMap(([type, { record }]) => (record ? [type] : []));
}

/** By type of event, whatever its category: the highest version that this program reads. */
export const READ_EVENTS: Readonly<Record<string, number>> = byType(({ version }) => version);

/** The same for the oldest version that this program can write. */
export const OLDEST_WRITTEN_EVENTS: Readonly<Record<string, number>> = byType(oldestWritten);

function byType(versionOf: (kind: EventKind) => number): Record<string, number> {
  return Object.fromEntries(
    Object.values(EVENT_CATALOGUE).flatMap((kinds) =>
      Object.entries(kinds).map(([type, kind]): [string, number] => [type, versionOf(kind)]),
    ),
  );
}
