/**
 * Named places where a test may kill the process: between the steps of a push, of a compaction, of the writing of a
 * manifest, of a sweep of the retention, of an erasure, of an export or import of the log, of a
 * webhook delivery, of the enrolment of an MFA token, of an exchange of an identity
 * token, of a rotation of the master key, of a backup, and between two appends of one command.
 *
 * Invariants: in production, reaching a failpoint calls a function that does nothing.
 */

export const FAILPOINTS = [
  'push-pack-received',
  'push-layer-stored',
  'push-parts-appended',
  'push-appended',
  'push-installed',
  'push-answered',
  'refs-restored',
  'repository-listed-again',
  'purge-appended',
  'expiry-appended',
  'expired-layer-removed',
  'stream-pruned',
  'compaction-layer-stored',
  'compaction-appended',
  'dropping-layers-stored',
  'dropping-appended',
  'manifest-refs-stored',
  'manifest-stored',
  'manifest-removed',
  'repository-created',
  'repository-closed',
  'account-username-claimed',
  'account-email-claimed',
  'account-created',
  'account-username-confirmed',
  'email-claimed',
  'email-changed',
  'email-claim-confirmed',
  'email-record-removed',
  'log-export-written',
  'log-import-begun',
  'log-import-appended',
  'log-import-verified',
  'account-erased',
  'erasure-key-destroyed',
  'erasure-recorded',
  'erasure-rows-removed',
  'erasure-layer-removed',
  'webhook-payload-stored',
  'webhook-delivery-requested',
  'webhook-push-waits',
  'webhook-rows-expanded',
  'webhook-attempt-claimed',
  'webhook-attempt-sent',
  'webhook-attempt-recorded',
  'webhook-wait-over',
  'webhook-attempt-due',
  'device-login-held',
  'device-login-described',
  'device-login-decided',
  'device-login-claimed',
  'mfa-seed-stored',
  'mfa-enrolment-begun',
  'mfa-challenge-taken',
  'mfa-passkey-stored',
  'mfa-token-activated',
  'mfa-tokens-removed',
  'exchange-verified',
  'exchange-appended',
  'master-key-stored',
  'master-key-announced',
  'master-key-batch',
  'master-key-accounts',
  'master-key-finished',
  'master-key-replaced',
  'backup-database-saved',
] as const;

export type FailpointName = (typeof FAILPOINTS)[number];

/** Called when the process reaches the failpoint. */
export type Failpoint = (point: FailpointName) => Promise<void>;
