/**
 * The policy that removes a webhook's previous secret from the vault when it no longer signs.
 *
 * Invariants: no secret is removed while a node may still sign with it. The policy passes rotations in the order of
 * the log, each only after its secret was removed, so the mark is all that it must remember. Any number of nodes may
 * sweep.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, timestamp, uuid } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Vault } from '../../ports/vault.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import { secretBeforeRotation } from './superseded-webhook-records.ts';

/**
 * How long after the overlap the vault keeps the previous secret: a node whose clock is behind signs with it a little
 * longer. Internal: no delivery is signed with the secret any more.
 */
export const WEBHOOK_SECRET_REMOVAL_MARGIN_MS = 10 * 60_000;

export interface ExpiredSecretsContext extends PassingContext {
  readonly vault: Pick<Vault, 'delete'>;
  readonly clock: Pick<Clock, 'now'>;
}

const POLICY = 'webhook-secret-expiry';

/**
 * Reads the log from where it stopped, up to the first rotation whose secret still signs. The secrets of later
 * rotations still sign too, because all have the same time. Rejects if the log, the marks or the vault cannot be
 * reached. Resolves early when the signal is aborted. Removing twice is harmless.
 */
export async function removeExpiredWebhookSecrets(
  context: ExpiredSecretsContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  await passEvents(context, POLICY, (recorded) => pass(context, recorded), signal);
}

/** Removes the secret that the event rotated out. Resolves false if a node may still sign with it. */
async function pass({ events, vault, clock }: ExpiredSecretsContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'WebhookSecretRotated' || categoryOf(recorded.stream) !== accounts.category) return true;
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type !== 'WebhookSecretRotated') return true;
  const removableAt = plusMs(timestamp(event.data.previous_valid_until), WEBHOOK_SECRET_REMOVAL_MARGIN_MS);
  if (clock.now() < removableAt) return false;
  const secret = await secretBeforeRotation(events, recorded, event.data.webhook_id);
  await vault.delete(uuid<AccountId>(entityIdOf(recorded.stream)), secret);
  return true;
}
