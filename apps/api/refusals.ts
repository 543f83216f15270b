/**
 * The one table from a refusal's code to the answer of the API: status, message, and the field at fault.
 *
 * Must stay true: the table covers the union of refusals exactly, which its type checks. No message holds a secret.
 */
import type { Refusal, RefusalCode } from '../../core/kernel/refusal.ts';
import type { TargetFault } from '../../core/kernel/target-fault.ts';
import {
  DEVICE_HOSTNAME_LENGTH_MAX,
  MFA_TOKEN_NAME_LENGTH_MAX,
  MFA_TOKENS_MAX,
  PASSWORD_LENGTH_MAX,
  PASSWORD_LENGTH_MIN,
  REPOSITORY_DESCRIPTION_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
  TOKEN_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIM_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIMS_MAX,
  TRUST_RULE_PATTERN_LENGTH_MAX,
  TRUST_RULE_WILDCARDS_MAX,
  TRUST_RULES_MAX,
  WEBHOOK_SERIES_MAX,
  WEBHOOKS_MAX,
} from '../../core/kernel/limits.ts';
import { type Answer, problem, unauthenticated } from './http/answer.ts';

export interface RefusalMessage<Refused extends Refusal> {
  readonly status: 401 | 403 | 404 | 409 | 410 | 422 | 429;
  readonly message: (refusal: Refused) => string;
  /** The field of the body at fault, which makes `detail` an array; absent if no single field is. */
  readonly field?: string;
}

type RefusalOf = { readonly [Code in RefusalCode]: Extract<Refusal, { code: Code }> };

export const REFUSALS: { readonly [Code in RefusalCode]: RefusalMessage<RefusalOf[Code]> } = {
  'username-invalid': { status: 422, field: 'username', message: (r) => r.reason },
  'username-reserved': { status: 422, field: 'username', message: () => 'This username is reserved' },
  'username-taken': { status: 409, message: () => 'This username is taken' },
  'email-invalid': { status: 422, field: 'email', message: () => 'This is not an e-mail address' },
  'email-taken': { status: 409, message: () => 'An account with this e-mail address exists' },
  'password-length': {
    status: 422,
    field: 'password',
    message: () => `A password has ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
  },
  'password-wrong': { status: 403, field: 'current_password', message: () => 'This is not the password' },
  'sign-up-closed': { status: 403, message: () => 'New accounts are made by the operator of this service' },
  'sign-in-failed': { status: 401, message: () => 'The name or the password is wrong' },
  'too-many-attempts': { status: 429, message: (r) => `Too many attempts: try again in ${spanText(r.waitSeconds)}` },
  'session-no-longer-valid': { status: 401, message: () => 'The session is no longer valid: sign in again' },
  'account-not-found': { status: 404, message: () => 'Account not found' },
  'token-not-found': { status: 404, message: () => 'Access token not found' },
  'token-no-longer-valid': { status: 401, message: () => 'The access token is no longer valid' },
  'token-name-length': {
    status: 422,
    field: 'name',
    message: () => `A token's name has 1 to ${TOKEN_NAME_LENGTH_MAX} characters`,
  },
  'token-grants-empty': { status: 422, field: 'grants', message: () => 'A token carries at least one grant' },
  'token-scope-needs-repositories': {
    status: 422,
    field: 'repository_ids',
    message: () => 'The scope SELECTED_REPO needs at least one repository id',
  },
  'token-scope-takes-no-repositories': {
    status: 422,
    field: 'repository_ids',
    message: () => 'The scope ALL_REPO takes no repository ids',
  },
  'token-unknown-repositories': {
    status: 422,
    field: 'repository_ids',
    message: (r) => `Unknown repository ids: ${r.ids.slice(0, IDS_SHOWN_MAX).join(', ')}`,
  },
  'token-expiry-not-in-future': {
    status: 422,
    field: 'expires_at',
    message: () => 'The expiry must lie in the future',
  },
  'mfa-token-not-found': { status: 404, message: () => 'MFA token not found' },
  'mfa-token-limit-reached': { status: 422, message: () => `An account has at most ${MFA_TOKENS_MAX} MFA tokens` },
  'mfa-token-name-length': {
    status: 422,
    field: 'name',
    message: () => `An MFA token's name has 1 to ${MFA_TOKEN_NAME_LENGTH_MAX} characters`,
  },
  'mfa-token-active': { status: 409, message: () => 'This MFA token is active already' },
  'mfa-code-wrong': { status: 422, field: 'code', message: () => 'This code is wrong, or its time is over' },
  'mfa-code-used': {
    status: 422,
    field: 'code',
    message: () => 'This code was used already. Wait until your app shows the next one',
  },
  'mfa-passkey-pending': {
    status: 409,
    message: () => 'Only one passkey can be pending at a time. Finish or delete the pending one',
  },
  'mfa-passkey-known': { status: 409, message: () => 'This passkey is one of your MFA tokens already' },
  'mfa-passkey-refused': { status: 422, message: () => 'The passkey could not be verified' },
  'mfa-passkey-challenge-over': {
    status: 410,
    message: () => 'The passkey was used too late, or on a page that was used before. Try it again',
  },
  'mfa-passkey-counter-regressed': {
    status: 403,
    message: () => 'The counter of this passkey went back, so it may have been copied. Use another MFA token',
  },
  'device-hostname-length': {
    status: 422,
    field: 'hostname',
    message: () => `A hostname has 1 to ${DEVICE_HOSTNAME_LENGTH_MAX} characters`,
  },
  'device-session-not-found': { status: 404, message: () => 'Login session not found' },
  'device-session-expired': { status: 410, message: () => 'The login session has expired' },
  'device-session-decided': { status: 409, message: () => 'The login session was granted or denied already' },
  'device-login-pending': { status: 409, message: () => 'The login session was not granted yet' },
  'device-login-denied': { status: 403, message: () => 'The login was denied' },
  'device-login-claimed': { status: 410, message: () => 'The token of this login session was handed out already' },
  'repository-name-invalid': { status: 422, field: 'name', message: (r) => r.reason },
  'repository-name-taken': { status: 409, message: () => 'A repository with this name exists already' },
  'repository-quota-reached': { status: 422, message: (r) => `The plan's quota of ${r.quota} repositories is reached` },
  'repository-not-found': { status: 404, message: () => 'Repository not found' },
  'repository-description-length': {
    status: 422,
    field: 'description',
    message: () => `A description has at most ${REPOSITORY_DESCRIPTION_LENGTH_MAX} characters`,
  },
  'branch-name-invalid': { status: 422, field: 'default_branch', message: (r) => `Not a branch: ${r.reason}` },
  // docs/interface.md, Errors, fixes this text.
  'repository-without-commits': { status: 404, message: () => 'No commit found in the repository' },
  'ref-not-found': { status: 404, message: () => 'Ref not found' },
  'path-not-found': { status: 404, message: () => 'Path not found' },
  'path-not-a-file': { status: 422, message: () => 'Only a file has raw bytes' },
  'file-too-large': { status: 403, message: () => 'The file is larger than 64 MiB' },
  'webhook-not-found': { status: 404, message: () => 'Webhook not found' },
  'webhook-delivery-not-found': { status: 404, message: () => 'Webhook delivery not found' },
  'webhook-redelivery-limit-reached': {
    status: 422,
    message: () => `A delivery is made again at most ${WEBHOOK_SERIES_MAX - 1} times`,
  },
  'webhook-limit-reached': { status: 422, message: () => `An account has at most ${WEBHOOKS_MAX} webhooks` },
  'webhook-events-empty': { status: 422, field: 'events', message: () => 'A webhook listens for at least one event' },
  'webhook-url-refused': { status: 422, field: 'url', message: (r) => TARGET_FAULTS[r.fault] },
  'trust-rule-not-found': { status: 404, message: () => 'Trust rule not found' },
  'trust-rule-limit-reached': { status: 422, message: () => `An account has at most ${TRUST_RULES_MAX} trust rules` },
  'trust-rule-name-length': {
    status: 422,
    field: 'name',
    message: () => `A trust rule's name has 1 to ${TOKEN_NAME_LENGTH_MAX} characters`,
  },
  'trust-rule-issuer-refused': { status: 422, field: 'issuer', message: (r) => TARGET_FAULTS[r.fault] },
  'trust-rule-issuer-form': {
    status: 422,
    field: 'issuer',
    message: () => 'An issuer is a URL such as https://issuer.example, without a query or a fragment',
  },
  'trust-rule-subject-form': {
    status: 422,
    field: 'subject',
    message: () =>
      `A subject has 1 to ${TRUST_RULE_PATTERN_LENGTH_MAX} characters, none of them a control character, and at most ${TRUST_RULE_WILDCARDS_MAX} wildcards`,
  },
  'trust-rule-claims-form': {
    status: 422,
    field: 'claims',
    message: () =>
      `A rule asks for at most ${TRUST_RULE_CLAIMS_MAX} claims, none of which the service judges itself (iss, aud, sub, exp, nbf, iat, jti). A name has 1 to ${TRUST_RULE_CLAIM_NAME_LENGTH_MAX} characters, a value 1 to ${TRUST_RULE_PATTERN_LENGTH_MAX} with at most ${TRUST_RULE_WILDCARDS_MAX} wildcards`,
  },
  'trust-rule-exceeds-maker': {
    status: 403,
    message: (r) => `A trust rule cannot carry more than your own token, which lacks ${r.lacks}`,
  },
  'oidc-exchange-failed': { status: 401, message: () => 'The exchange failed' },
  'storage-bucket-not-found': { status: 404, message: () => 'Storage bucket not found' },
  'storage-quota-reached': { status: 422, message: () => "The plan's quota of storage is reached" },
  'ingress-quota-reached': { status: 422, message: () => "The plan's quota of ingress is reached for this month" },
  'transfer-quota-reached': { status: 403, message: () => "The plan's quota of transfer is reached for this month" },
};

const TARGET_FAULTS: { readonly [Fault in TargetFault]: string } = {
  'url-malformed': 'This is not a URL such as https://receiver.example/hook',
  'url-too-long': `A URL has at most ${OUTGOING_URL_LENGTH_MAX} characters`,
  'url-not-https': 'The URL must start with https://',
  'url-with-credentials': 'The URL must not hold a user name or a password',
  'own-host': 'The URL must not lead to this service',
  'address-not-public': 'The URL must lead to a public address',
  'peer-not-checked': 'The URL must lead to a public address',
};

const IDS_SHOWN_MAX = 10;

export function refusalAnswer(refusal: Refusal): Answer {
  const { status, field } = REFUSALS[refusal.code];
  const text = messageOf(refusal.code, refusal);
  if (status === 401) return unauthenticated(text);
  const headers = refusal.code === 'too-many-attempts' ? { 'retry-after': String(refusal.waitSeconds) } : {};
  return problem(
    status,
    field === undefined ? text : [{ loc: ['body', field], msg: text, type: refusal.code }],
    headers,
  );
}

function spanText(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}

/** The same message for operators, to whom `strata-admin` prints refusals. */
export function refusalText(refusal: Refusal): string {
  return messageOf(refusal.code, refusal);
}

/** The type parameter ties the table's entry to the refusal of the same code. */
function messageOf<Code extends RefusalCode>(code: Code, refusal: RefusalOf[Code]): string {
  return REFUSALS[code].message(refusal);
}
