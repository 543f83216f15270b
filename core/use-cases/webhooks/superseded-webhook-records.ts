/**
 * What an event of a webhook supersedes in the vault, read from the log: for the sweeps, which remove it where the event's
 * writer was cut off, or once its time is over.
 *
 * Must stay true: what is found is named by no later state of the webhook, however many events followed.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import type { EventStore } from '../../ports/event-store.ts';
import { type VaultRef, vaultRef } from '../../ports/vault.ts';

const PAGE_EVENTS_MAX = 100;

/** Empty for events that supersede nothing. Reads the stream back to what named the records. */
export async function supersededWebhookRecords(
  events: Pick<EventStore, 'readStream'>,
  recorded: RecordedEvent,
): Promise<readonly VaultRef[]> {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type === 'WebhookSecretRotated') {
    // The secret before stays for its time; the one before that is over, if it was of the same URL.
    return (await namedBefore(events, recorded, event.data.webhook_id, 2)).secrets.slice(1);
  }
  if (event.type !== 'WebhookUrlChanged' && event.type !== 'WebhookDeleted') return [];
  const { url, secrets } = await namedBefore(events, recorded, event.data.webhook_id, Number.POSITIVE_INFINITY);
  // Older ones were superseded by rotations.
  return url === null ? [] : [url, ...secrets.slice(0, 2)];
}

/** The secret that a `WebhookSecretRotated` of the webhook rotated out. */
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
  /** Null where as many secrets were found before the URL. */
  readonly url: VaultRef | null;
  /** Those of the URL, newest first. */
  readonly secrets: readonly VaultRef[];
}

/** What the webhook's state held before the event: back to its URL, or to so many secrets. */
async function namedBefore(
  events: Pick<EventStore, 'readStream'>,
  { stream, revision }: RecordedEvent,
  webhookId: string,
  secretsMax: number,
): Promise<Named> {
  const secrets: VaultRef[] = [];
  for (let from = revision - 1; from >= 0; from -= PAGE_EVENTS_MAX) {
    const page = await events.readStream(stream, { direction: 'backwards', from, limit: PAGE_EVENTS_MAX });
    for (const recorded of page) {
      const { data } = readEvent<AccountEvent>(accounts.kinds, recorded);
      if (!('webhook_id' in data) || data.webhook_id !== webhookId || !('secret_ref' in data)) continue;
      secrets.push(vaultRef(data.secret_ref));
      if ('url_ref' in data) return { url: vaultRef(data.url_ref), secrets };
      if (secrets.length >= secretsMax) return { url: null, secrets };
    }
  }
  throw new TypeError(`${stream} has no beginning of webhook ${webhookId}`);
}
