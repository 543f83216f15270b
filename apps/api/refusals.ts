/**
 * The one table from a refusal's code to what a client of the API sees: status, words, and the field at fault.
 *
 * Must stay true: it covers the union of refusals exactly, which the type checks; words name no secret.
 */
import type { Refusal, RefusalCode } from '../../core/kernel/refusal.ts';
import type { TargetFault } from '../../core/ports/outgoing-requests.ts';
import {
  DEVICE_HOSTNAME_LENGTH_MAX,
  PASSWORD_LENGTH_MAX,
  PASSWORD_LENGTH_MIN,
  REPOSITORY_DESCRIPTION_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
  TOKEN_NAME_LENGTH_MAX,
  WEBHOOK_SERIES_MAX,
  WEBHOOKS_MAX,
} from '../../core/kernel/limits.ts';
import { type Answer, problem, unauthenticated } from './http/answer.ts';

export interface Wording<Refused extends Refusal> {
  readonly status: 401 | 403 | 404 | 409 | 410 | 422;
  readonly words: (refusal: Refused) => string;
  /** The field of the body that is at fault: `detail` is then an array; absent for refusals of business. */
  readonly field?: string;
}

type RefusalOf = { readonly [Code in RefusalCode]: Extract<Refusal, { code: Code }> };

export const REFUSALS: { readonly [Code in RefusalCode]: Wording<RefusalOf[Code]> } = {
  'username-invalid': { status: 422, field: 'username', words: (r) => r.reason },
  'username-reserved': { status: 422, field: 'username', words: () => 'This username is reserved' },
  'username-taken': { status: 409, words: () => 'This username is taken' },
  'email-invalid': { status: 422, field: 'email', words: () => 'This is not an e-mail address' },
  'email-taken': { status: 409, words: () => 'An account with this e-mail address exists' },
  'password-length': {
    status: 422,
    field: 'password',
    words: () => `A password has ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
  },
  'account-not-found': { status: 404, words: () => 'Account not found' },
  'token-not-found': { status: 404, words: () => 'Access token not found' },
  'token-no-longer-valid': { status: 401, words: () => 'The access token is no longer valid' },
  'token-name-length': {
    status: 422,
    field: 'name',
    words: () => `A token's name has 1 to ${TOKEN_NAME_LENGTH_MAX} characters`,
  },
  'token-grants-empty': { status: 422, field: 'grants', words: () => 'A token carries at least one grant' },
  'token-scope-needs-repositories': {
    status: 422,
    field: 'repository_ids',
    words: () => 'The scope SELECTED_REPO needs at least one repository id',
  },
  'token-scope-takes-no-repositories': {
    status: 422,
    field: 'repository_ids',
    words: () => 'The scope ALL_REPO takes no repository ids',
  },
  'token-unknown-repositories': {
    status: 422,
    field: 'repository_ids',
    words: (r) => `Unknown repository ids: ${r.ids.slice(0, IDS_SHOWN_MAX).join(', ')}`,
  },
  'token-expiry-not-in-future': { status: 422, field: 'expires_at', words: () => 'The expiry must lie in the future' },
  'device-hostname-length': {
    status: 422,
    field: 'hostname',
    words: () => `A hostname has 1 to ${DEVICE_HOSTNAME_LENGTH_MAX} characters`,
  },
  'device-session-not-found': { status: 404, words: () => 'Login session not found' },
  'device-session-expired': { status: 410, words: () => 'The login session has expired' },
  'device-session-decided': { status: 409, words: () => 'The login session was granted or denied already' },
  'device-login-pending': { status: 409, words: () => 'The login session was not granted yet' },
  'device-login-denied': { status: 403, words: () => 'The login was denied' },
  'device-login-claimed': { status: 410, words: () => 'The token of this login session was handed out already' },
  'repository-name-invalid': { status: 422, field: 'name', words: (r) => r.reason },
  'repository-name-taken': { status: 409, words: () => 'A repository with this name exists already' },
  'repository-quota-reached': { status: 422, words: (r) => `The plan's quota of ${r.quota} repositories is reached` },
  'repository-not-found': { status: 404, words: () => 'Repository not found' },
  'repository-description-length': {
    status: 422,
    field: 'description',
    words: () => `A description has at most ${REPOSITORY_DESCRIPTION_LENGTH_MAX} characters`,
  },
  'branch-name-invalid': { status: 422, field: 'default_branch', words: (r) => `Not a branch: ${r.reason}` },
  // The words are the contract's own (spec.md, Errors).
  'repository-without-commits': { status: 404, words: () => 'No commit found in the repository' },
  'ref-not-found': { status: 404, words: () => 'Ref not found' },
  'path-not-found': { status: 404, words: () => 'Path not found' },
  'path-not-a-file': { status: 422, words: () => 'Only a file has raw bytes' },
  'file-too-large': { status: 403, words: () => 'The file is larger than 64 MiB' },
  'webhook-not-found': { status: 404, words: () => 'Webhook not found' },
  'webhook-delivery-not-found': { status: 404, words: () => 'Webhook delivery not found' },
  'webhook-redelivery-limit-reached': {
    status: 422,
    words: () => `A delivery is made again at most ${WEBHOOK_SERIES_MAX - 1} times`,
  },
  'webhook-limit-reached': { status: 422, words: () => `An account has at most ${WEBHOOKS_MAX} webhooks` },
  'webhook-events-empty': { status: 422, field: 'events', words: () => 'A webhook listens for at least one event' },
  'webhook-url-refused': { status: 422, field: 'url', words: (r) => TARGET_FAULTS[r.fault] },
  'storage-bucket-not-found': { status: 404, words: () => 'Storage bucket not found' },
  'storage-quota-reached': { status: 422, words: () => "The plan's quota of storage is reached" },
  'ingress-quota-reached': { status: 422, words: () => "The plan's quota of ingress is reached for this month" },
  'transfer-quota-reached': { status: 403, words: () => "The plan's quota of transfer is reached for this month" },
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
  const text = wordsOf(refusal.code, refusal);
  if (status === 401) return unauthenticated(text);
  return problem(status, field === undefined ? text : [{ loc: ['body', field], msg: text, type: refusal.code }]);
}

/** The same words for operators, who meet refusals on a terminal. */
export function refusalText(refusal: Refusal): string {
  return wordsOf(refusal.code, refusal);
}

/** The code as a type parameter ties the table's entry to its own refusal. */
function wordsOf<Code extends RefusalCode>(code: Code, refusal: RefusalOf[Code]): string {
  return REFUSALS[code].words(refusal);
}
