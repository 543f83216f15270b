/** Which errors are outages, which end without a change of the input: a policy then retries until it succeeds. */
import { DeliveryStoreError } from '../ports/delivery-store.ts';
import { DeviceLoginRequestsError } from '../ports/device-login-requests.ts';
import { EventStoreError, type EventStoreErrorCode } from '../ports/event-store.ts';
import { LayerCompactionsError } from '../ports/layer-compactions.ts';
import { ManifestWritesError } from '../ports/manifest-writes.ts';
import { ReadModelError } from '../ports/read-models.ts';
import { VaultError } from '../ports/vault.ts';

const OUTAGES_OF_THE_LOG: ReadonlySet<EventStoreErrorCode> = new Set([
  'log-unavailable',
  'append-outcome-unknown',
  'clock-differs',
] as const);

export function isOutage(error: unknown): boolean {
  if (error instanceof EventStoreError) {
    return OUTAGES_OF_THE_LOG.has(error.code);
  }
  if (error instanceof VaultError) return error.code === 'vault-unavailable';
  return (
    error instanceof DeliveryStoreError ||
    error instanceof DeviceLoginRequestsError ||
    error instanceof LayerCompactionsError ||
    error instanceof ManifestWritesError ||
    error instanceof ReadModelError
  );
}
