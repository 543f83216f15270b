/**
 * Every expected refusal of the service: the catalogue of stable codes.
 *
 * Must stay true: a refusal is a value that a use case returns; a thrown error is a bug or an outage. One table in
 * apps/api holds the message and HTTP status of each refusal, and must cover this union exactly.
 */
import type { TargetFault } from './target-fault.ts';
import type { RepositoryId } from './ids.ts';
import type { Grant, Scope } from './grants.ts';

export type Refusal =
  | { readonly code: 'username-invalid'; readonly reason: string }
  | { readonly code: 'username-reserved'; readonly username: string }
  | { readonly code: 'username-taken'; readonly username: string }
  | { readonly code: 'email-invalid' }
  | { readonly code: 'email-taken' }
  | { readonly code: 'password-length' }
  | { readonly code: 'password-wrong' }
  | { readonly code: 'sign-up-closed' }
  /** The account is unknown, cannot be used, or has another password: the refusal does not say which. */
  | { readonly code: 'sign-in-failed' }
  | { readonly code: 'too-many-attempts'; readonly waitSeconds: number }
  | { readonly code: 'session-no-longer-valid' }
  | { readonly code: 'account-not-found' }
  | { readonly code: 'token-not-found' }
  | { readonly code: 'token-no-longer-valid' }
  | { readonly code: 'token-name-length' }
  | { readonly code: 'token-grants-empty' }
  | { readonly code: 'token-scope-needs-repositories' }
  | { readonly code: 'token-scope-takes-no-repositories' }
  | { readonly code: 'token-unknown-repositories'; readonly ids: readonly RepositoryId[] }
  | { readonly code: 'token-expiry-not-in-future' }
  | { readonly code: 'mfa-token-not-found' }
  | { readonly code: 'mfa-token-limit-reached' }
  | { readonly code: 'mfa-token-name-length' }
  | { readonly code: 'mfa-token-active' }
  | { readonly code: 'mfa-code-wrong' }
  | { readonly code: 'mfa-code-used' }
  | { readonly code: 'mfa-passkey-pending' }
  | { readonly code: 'mfa-passkey-known' }
  | { readonly code: 'mfa-passkey-refused' }
  | { readonly code: 'mfa-passkey-challenge-over' }
  | { readonly code: 'mfa-passkey-counter-regressed' }
  | { readonly code: 'device-hostname-length' }
  | { readonly code: 'device-session-not-found' }
  | { readonly code: 'device-session-expired' }
  | { readonly code: 'device-session-decided' }
  | { readonly code: 'device-login-pending' }
  | { readonly code: 'device-login-denied' }
  | { readonly code: 'device-login-claimed' }
  | { readonly code: 'repository-name-invalid'; readonly reason: string }
  | { readonly code: 'repository-name-taken'; readonly name: string }
  | { readonly code: 'repository-quota-reached'; readonly quota: number }
  | { readonly code: 'repository-not-found' }
  | { readonly code: 'repository-description-length' }
  | { readonly code: 'branch-name-invalid'; readonly reason: string }
  | { readonly code: 'repository-without-commits' }
  | { readonly code: 'ref-not-found' }
  | { readonly code: 'path-not-found' }
  | { readonly code: 'path-not-a-file' }
  | { readonly code: 'file-too-large' }
  | { readonly code: 'webhook-not-found' }
  | { readonly code: 'webhook-delivery-not-found' }
  | { readonly code: 'webhook-redelivery-limit-reached' }
  | { readonly code: 'webhook-limit-reached' }
  | { readonly code: 'webhook-events-empty' }
  | { readonly code: 'webhook-url-refused'; readonly fault: TargetFault }
  | { readonly code: 'trust-rule-not-found' }
  | { readonly code: 'trust-rule-limit-reached' }
  | { readonly code: 'trust-rule-name-length' }
  | { readonly code: 'trust-rule-issuer-refused'; readonly fault: TargetFault }
  | { readonly code: 'trust-rule-issuer-form' }
  | { readonly code: 'trust-rule-subject-form' }
  | { readonly code: 'trust-rule-claims-form' }
  /** Names the grant, or the scope, that the rule would carry and its maker lacks. */
  | { readonly code: 'trust-rule-exceeds-maker'; readonly lacks: Grant | Scope }
  /** For the caller of an exchange, who learns nothing more. */
  | { readonly code: 'oidc-exchange-failed' }
  | { readonly code: 'storage-bucket-not-found' }
  | { readonly code: 'storage-quota-reached' }
  | { readonly code: 'ingress-quota-reached' }
  | { readonly code: 'transfer-quota-reached' };

export type RefusalCode = Refusal['code'];
