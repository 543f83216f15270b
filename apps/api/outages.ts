/**
 * The one table from an outage to what a client of the API sees: try again, or not, and why in plain words.
 *
 * Must stay true: it covers the codes of every port's error exactly, which the type checks; no internals.
 */
import { DeliveryStoreError } from '../../core/ports/delivery-store.ts';
import { EventStoreError, type EventStoreErrorCode } from '../../core/ports/event-store.ts';
import { LayerStoreError, type LayerStoreErrorCode } from '../../core/ports/layer-store.ts';
import { ObjectDatabaseError, type ObjectDatabaseErrorCode } from '../../core/ports/object-database.ts';
import { ReadModelError, type ReadModelErrorCode } from '../../core/ports/read-models.ts';
import { VaultError, type VaultErrorCode } from '../../core/ports/vault.ts';
import { type Answer, problem, unavailable } from './http/answer.ts';

/** The node did not catch up with the log in time. */
export class NodeBehind extends Error {
  override readonly name = 'NodeBehind';
  readonly code = 'node-behind';
}

type OutageCode =
  | DeliveryStoreError['code']
  | EventStoreErrorCode
  | LayerStoreErrorCode
  | ObjectDatabaseErrorCode
  | ReadModelErrorCode
  | VaultErrorCode
  | NodeBehind['code'];

interface Outage {
  readonly words: string;
  /** Null: trying again does not help, so it is 500 (spec.md, Errors). */
  readonly retryAfterSeconds: number | null;
}

const BEHIND: Outage = { words: 'The service is catching up, try again', retryAfterSeconds: 1 };
const DOWN: Outage = { words: 'The service cannot reach its storage, try again', retryAfterSeconds: 5 };
const UNKNOWN_OUTCOME: Outage = {
  words: 'It is not known whether the change was made: look before you try again',
  retryAfterSeconds: 5,
};
const FAULT: Outage = { words: 'Internal error', retryAfterSeconds: null };
const LOST_OBJECTS: Outage = { words: "The repository's objects cannot be read", retryAfterSeconds: null };

export const OUTAGES: { readonly [Code in OutageCode]: Outage } = {
  'node-behind': BEHIND,
  'delivery-store-unavailable': DOWN,
  'log-unavailable': DOWN,
  'append-outcome-unknown': UNKNOWN_OUTCOME,
  'append-too-large': FAULT,
  'invalid-event': FAULT,
  'log-diverged': BEHIND,
  'read-model-behind': BEHIND,
  'read-model-parked': { words: 'The service needs its operator, try again later', retryAfterSeconds: 60 },
  'read-model-unavailable': DOWN,
  'layer-corrupt': LOST_OBJECTS,
  'layer-missing': LOST_OBJECTS,
  'object-database-unavailable': DOWN,
  'layer-not-found': LOST_OBJECTS,
  'layer-store-full': DOWN,
  'layer-store-unavailable': DOWN,
  'range-not-satisfiable': FAULT,
  'account-erased': FAULT,
  'record-tampered': FAULT,
  'vault-unavailable': DOWN,
};

/** Null for an error that is no outage: a bug. */
export function outageAnswer(error: unknown): Answer | null {
  const isOutage =
    error instanceof DeliveryStoreError ||
    error instanceof EventStoreError ||
    error instanceof LayerStoreError ||
    error instanceof ObjectDatabaseError ||
    error instanceof ReadModelError ||
    error instanceof VaultError ||
    error instanceof NodeBehind;
  if (!isOutage) return null;
  const { words, retryAfterSeconds } = OUTAGES[error.code];
  return retryAfterSeconds === null ? problem(500, words) : unavailable(words, retryAfterSeconds);
}
