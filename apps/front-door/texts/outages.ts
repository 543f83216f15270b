/**
 * The one table from an error code to the answer clients get: the status, the reason in plain words, and when to try
 * again. REST and Git each write the answer in their own form.
 *
 * Invariants: the table covers the codes of every port's error exactly, which its type checks. No message names a
 * machine, a path or an address.
 */
import { CheckpointError } from '../../../core/ports/account-log.ts';
import { BucketFindingsError } from '../../../core/ports/bucket-findings.ts';
import { RoleRefused } from '../../../core/ports/buckets.ts';
import { DeliveryStoreError } from '../../../core/ports/delivery-store.ts';
import { DeviceLoginRequestsError } from '../../../core/ports/device-login-requests.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { LayerCompactionsError } from '../../../core/ports/layer-compactions.ts';
import { LayerStoreError } from '../../../core/ports/layer-store.ts';
import { LogKeysError } from '../../../core/ports/log-keys.ts';
import { ManifestWritesError } from '../../../core/ports/manifest-writes.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { PasskeyChallengesError } from '../../../core/ports/passkey-challenges.ts';
import { PasswordHasherError } from '../../../core/ports/password-hasher.ts';
import { RateLimitsError } from '../../../core/ports/rate-limits.ts';
import { ReadModelError } from '../../../core/ports/read-models.ts';
import { RefusedExchangesError } from '../../../core/ports/refused-exchanges.ts';
import { SessionStoreError } from '../../../core/ports/session-store.ts';
import { SigningKeysError } from '../../../core/ports/signing-keys.ts';
import { VaultError } from '../../../core/ports/vault.ts';
import { NodeBehind } from '../admission.ts';
import { BUCKET_OUTAGES } from './bucket-outages.ts';

/** Every error class by which a port or this node reports that it cannot serve now. */
export const OUTAGE_ERRORS = [
  BucketFindingsError,
  CheckpointError,
  DeliveryStoreError,
  DeviceLoginRequestsError,
  EventStoreError,
  LayerCompactionsError,
  LayerStoreError,
  LogKeysError,
  ManifestWritesError,
  NodeBehind,
  ObjectDatabaseError,
  PasskeyChallengesError,
  PasswordHasherError,
  RateLimitsError,
  ReadModelError,
  RefusedExchangesError,
  RoleRefused,
  SessionStoreError,
  SigningKeysError,
  VaultError,
] as const;

type OutageError = InstanceType<(typeof OUTAGE_ERRORS)[number]>;

/** `disk-full` stands for ENOSPC and EDQUOT, in the cause chain of any other error. */
export type OutageCode = OutageError['code'] | 'disk-full';

/** 500 means a fault of the server that a retry does not cure. */
export type Outage =
  | { readonly status: 503; readonly message: string; readonly retryAfterSeconds: number }
  | { readonly status: 500; readonly message: string };

const BEHIND: Outage = { status: 503, message: 'The service is catching up, try again', retryAfterSeconds: 1 };
const DOWN: Outage = { status: 503, message: 'The service cannot reach its storage, try again', retryAfterSeconds: 5 };
const LOG_DOWN: Outage = {
  ...DOWN,
  message: 'The service cannot reach its storage, try again: nothing was changed unless a success was reported',
};
const UNKNOWN_OUTCOME: Outage = {
  status: 503,
  message: 'It is not known whether the change was made: check before you try again',
  retryAfterSeconds: 5,
};
const CLOCK_DIFFERS: Outage = {
  status: 503,
  message: "The clock of this server differs from its database's: nothing is changed until its operator sets it right",
  retryAfterSeconds: 60,
};
const NEEDS_OPERATOR: Outage = {
  status: 503,
  message: 'The service needs its operator, try again later',
  retryAfterSeconds: 60,
};
const LOST_TAIL: Outage = {
  status: 500,
  message: 'The log does not continue what was signed before: the operator of the service must accept the loss',
};
const DIVERGED: Outage = {
  status: 500,
  message: 'The log lacks or has changed what this service had read of it: the operator of the service must act',
};
const DISK_FULL: Outage = {
  status: 503,
  message: 'The server has no room left on its disk: try again later',
  retryAfterSeconds: 60,
};
const LOST_OBJECTS: Outage = {
  status: 503,
  message: 'Stored objects of this repository are damaged or missing: whoever keeps its storage must act',
  retryAfterSeconds: 60,
};
const LARGE_OBJECTS: Outage = {
  status: 500,
  message: 'This repository holds objects that are larger than this service reads',
};
const BUSY: Outage = { status: 503, message: 'The service is busy, try again', retryAfterSeconds: 5 };
const bucketOutage = (code: keyof typeof BUCKET_OUTAGES): Outage => {
  const { what, helps } = BUCKET_OUTAGES[code];
  const [advice, retryAfterSeconds] = helps === 'retry' ? [', try again', 5] : [': its owner must act', 60];
  return { status: 503, message: `The bucket that holds this repository ${what}${advice}`, retryAfterSeconds };
};
const FAULT: Outage = { status: 500, message: 'Internal error' };

export const OUTAGES: { readonly [Code in OutageCode]: Outage } = {
  'node-behind': BEHIND,
  'delivery-store-unavailable': DOWN,
  'device-logins-unavailable': DOWN,
  'layer-compactions-unavailable': DOWN,
  'manifest-writes-unavailable': DOWN,
  'log-unavailable': LOG_DOWN,
  'append-outcome-unknown': UNKNOWN_OUTCOME,
  'clock-differs': CLOCK_DIFFERS,
  'append-too-late': BUSY,
  'append-too-large': FAULT,
  'invalid-event': FAULT,
  'log-diverged': DIVERGED,
  'event-unreadable': NEEDS_OPERATOR,
  'log-contradicts-checkpoint': LOST_TAIL,
  'log-keys-tampered': NEEDS_OPERATOR,
  'log-keys-unavailable': DOWN,
  'read-model-behind': BEHIND,
  'read-model-parked': NEEDS_OPERATOR,
  'read-model-unavailable': DOWN,
  'layer-corrupt': LOST_OBJECTS,
  'layer-missing': LOST_OBJECTS,
  'object-database-unavailable': DOWN,
  'passkey-challenges-unavailable': DOWN,
  'object-too-large': LARGE_OBJECTS,
  'reading-too-costly': LARGE_OBJECTS,
  'password-hasher-busy': BUSY,
  'rate-limits-unavailable': DOWN,
  'bucket-findings-unavailable': DOWN,
  'refused-exchanges-unavailable': DOWN,
  'layer-not-found': LOST_OBJECTS,
  'layer-store-full': DISK_FULL,
  'layer-store-unavailable': DOWN,
  'layer-store-refused': bucketOutage('layer-store-refused'),
  'range-not-satisfiable': FAULT,
  'bucket-missing': bucketOutage('bucket-missing'),
  'access-denied': bucketOutage('access-denied'),
  'get-denied': bucketOutage('get-denied'),
  'head-denied': bucketOutage('head-denied'),
  'put-denied': bucketOutage('put-denied'),
  'delete-denied': bucketOutage('delete-denied'),
  'list-denied': bucketOutage('list-denied'),
  'credentials-invalid': bucketOutage('credentials-invalid'),
  'credentials-refused': bucketOutage('credentials-refused'),
  'object-missing': LOST_OBJECTS,
  'object-altered': LOST_OBJECTS,
  'multipart-missing': bucketOutage('multipart-missing'),
  'wrong-region': bucketOutage('wrong-region'),
  'clock-skewed': NEEDS_OPERATOR,
  throttled: bucketOutage('throttled'),
  'timed-out': bucketOutage('timed-out'),
  'certificate-invalid': bucketOutage('certificate-invalid'),
  'target-refused': bucketOutage('target-refused'),
  unreachable: bucketOutage('unreachable'),
  'not-s3': bucketOutage('not-s3'),
  failed: DOWN,
  'session-store-unavailable': DOWN,
  'signing-keys-tampered': NEEDS_OPERATOR,
  'signing-keys-unavailable': DOWN,
  'account-erased': FAULT,
  'record-tampered': FAULT,
  'vault-unavailable': DOWN,
  'disk-full': DISK_FULL,
};

/** Returns null for an error that is not in the table: a bug. */
export function outageOf(error: unknown): Outage | null {
  const code = outageCodeOf(error);
  return code === null ? null : OUTAGES[code];
}

/** Returns the code of a thrown error in the table; null for a bug. */
export function outageCodeOf(error: unknown): OutageCode | null {
  // First: the code says what became of the append, which a full disk among the causes does not change.
  if (error instanceof EventStoreError) return error.code;
  if (isDiskFull(error)) return 'disk-full';
  // The store says why the objects cannot be had.
  if (error instanceof ObjectDatabaseError && error.code === 'object-database-unavailable') {
    return error.cause instanceof LayerStoreError ? error.cause.code : error.code;
  }
  return isOutageError(error) ? error.code : null;
}

function isOutageError(error: unknown): error is OutageError {
  return OUTAGE_ERRORS.some((kind) => error instanceof kind);
}

function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT' || isDiskFull(error.cause);
}
