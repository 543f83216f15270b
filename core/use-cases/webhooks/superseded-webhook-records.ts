/**
 * Finds the vault records that an event of a webhook supersedes, by reading the log. The sweeps remove them if the
 * event's writer was interrupted, or when their time is over.
 *
 * Invariants: no later state of the webhook refers to a record that is returned, however many events followed.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type VaultRef, vaultRef } from '../../kernel/vault-ref.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { readBack } from '../../runtime/read-back.ts';

/** Returns no record for an event that supersedes none. Reads the stream back to the events that named the records. */
export async function supersededWebhookRecords(
  events: Pick<EventStore, 'readStream'>,
  recorded: RecordedEvent,
): Promise<readonly VaultRef[]> {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type === 'WebhookSecretRotated') {
    // The previous secret signs for a while. The one before it is superseded, if it belonged to the same URL.
    return (await namedBefore(events, recorded, event.data.webhook_id, 2)).secrets.slice(1);
  }
  if (event.type !== 'WebhookUrlChanged' && event.type !== 'WebhookDeleted') return [];
  const { url, secrets } = await namedBefore(events, recorded, event.data.webhook_id, Number.POSITIVE_INFINITY);
  // Rotations superseded the older secrets.
  return url === null ? [] : [url, ...secrets.slice(0, 2)];
}

/** Returns the secret that a `WebhookSecretRotated` of the webhook rotated out. */
export async function secretBeforeRotation(
  events: Pick<EventStore, 'readStream'>,
  rotated: RecordedEvent,
  webhookId: string,
): Promise<VaultRef> {
  const [secret] = (await namedBefore(events, rotated, webhookId, 1)).secrets;
  if (secret === undefined) throw new TypeError(`Webhook ${webhookId} had no secret before its rotation`);
  return secret;
}

interface Named {
  /** Null if `secretsMax` secrets were found first. */
  readonly url: VaultRef | null;
  /** The secrets of the current URL, newest first. */
  readonly secrets: readonly VaultRef[];
}

/** Reads back from the event to the URL that was current before it, or to `secretsMax` of that URL's secrets. */
async function namedBefore(
  events: Pick<EventStore, 'readStream'>,
  { stream, revision }: RecordedEvent,
  webhookId: string,
  secretsMax: number,
): Promise<Named> {
  const secrets: VaultRef[] = [];
  for await (const recorded of readBack(events, stream, revision - 1)) {
    const { data } = readEvent<AccountEvent>(accounts.kinds, recorded);
    if (!('webhook_id' in data) || data.webhook_id !== webhookId || !('secret_ref' in data)) continue;
    secrets.push(vaultRef(data.secret_ref));
    if ('url_ref' in data) return { url: vaultRef(data.url_ref), secrets };
    if (secrets.length >= secretsMax) return { url: null, secrets };
  }
  throw new TypeError(`${stream} has no beginning of webhook ${webhookId}`);
}
