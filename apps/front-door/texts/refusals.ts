/**
 * The one table from a refusal's code to what the caller is told: status, message, and the field at fault. The API,
 * the website and `strata-admin` each write it in their own form.
 *
 * Invariants: the table covers the union of refusals exactly, which its type checks. No message holds a secret.
 */
import {
  ACCESS_TOKENS_MAX,
  ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX,
  DEVICE_HOSTNAME_LENGTH_MAX,
  DROPPING_BYTES_MAX,
  LOG_EXPORTS_OF_ACCOUNT_MAX,
  MFA_TOKEN_NAME_LENGTH_MAX,
  MFA_TOKENS_MAX,
  OUTGOING_URL_LENGTH_MAX,
  PACK_SIZE_BYTES_MAX,
  PASSWORD_LENGTH_MAX,
  PASSWORD_LENGTH_MIN,
  REPOSITORY_DESCRIPTION_LENGTH_MAX,
  STORAGE_BUCKET_NAME_LENGTH_MAX,
  STORAGE_BUCKETS_MAX,
  TOKEN_NAME_LENGTH_MAX,
  TOKENS_REPOSITORIES_MAX,
  TRUST_RULE_CLAIM_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIMS_MAX,
  TRUST_RULE_PATTERN_LENGTH_MAX,
  TRUST_RULE_WILDCARDS_MAX,
  TRUST_RULES_MAX,
  WEBHOOK_BUDGET_HOURS_MAX,
  WEBHOOK_SERIES_MAX,
  WEBHOOKS_MAX,
} from '../../../core/kernel/limits.ts';
import type {
  BucketSetting,
  BucketSettingFault,
  DependentNames,
  Refusal,
  RefusalCode,
} from '../../../core/kernel/refusal.ts';
import type { TargetFault } from '../../../core/kernel/target-fault.ts';
import { tokenChangesText } from './denials.ts';
import { LOST_PLACES } from './lost-places.ts';

export interface RefusalMessage<Refused extends Refusal> {
  readonly status: 401 | 403 | 404 | 409 | 410 | 422 | 429 | 503;
  readonly message: (refusal: Refused) => string;
  /** The field of the body at fault, which makes `detail` an array; absent if no single field is. */
  readonly field?: string | ((refusal: Refused) => string);
}

type RefusalOf = { readonly [Code in RefusalCode]: Extract<Refusal, { code: Code }> };

export const REFUSALS: { readonly [Code in RefusalCode]: RefusalMessage<RefusalOf[Code]> } = {
  'username-invalid': { status: 422, field: 'username', message: (r) => r.reason },
  'username-reserved': { status: 422, field: 'username', message: () => 'This username is reserved' },
  'username-taken': { status: 409, message: () => 'This username is taken' },
  'email-invalid': { status: 422, field: 'email', message: (r) => r.reason },
  'email-taken': { status: 409, message: () => 'An account with this email address exists' },
  'password-length': {
    status: 422,
    field: 'password',
    message: () => `A password has ${PASSWORD_LENGTH_MIN} to ${PASSWORD_LENGTH_MAX} characters`,
  },
  'password-wrong': { status: 403, field: 'current_password', message: () => 'This is not the password' },
  'sign-up-closed': { status: 403, message: () => 'New accounts are made by the operator of this service' },
  'sign-in-failed': { status: 401, message: () => 'The name or the password is wrong' },
  'too-many-attempts': { status: 429, message: (r) => `Too many attempts: try again in ${spanText(r.waitSeconds)}` },
  'changes-quota-reached': { status: 429, message: (r) => tokenChangesText(r.waitSeconds) },
  'upgrade-not-finished': {
    status: 409,
    message: () =>
      'The service is being upgraded, and its version from before could not read this change. Try again in ten minutes; its operator ends the wait with `strata-admin upgrade finish`',
  },
  'session-no-longer-valid': { status: 401, message: () => 'The session is no longer valid: sign in again' },
  'account-not-found': { status: 404, message: () => 'Account not found' },
  'no-such-tree': {
    status: 422,
    message: () => "The log has no such tree: sizes are at most the log's own, an entry comes before the tree's size",
  },
  'entry-not-found': { status: 404, message: () => 'The log of this account has no such event' },
  'token-not-found': { status: 404, message: () => 'Access token not found' },
  'token-limit-reached': {
    status: 422,
    message: () =>
      `An account has at most ${ACCESS_TOKENS_MAX} access tokens: revoke one that is not used, or let them expire`,
  },
  'token-repositories-reached': {
    status: 422,
    field: 'repository_ids',
    message: () =>
      `The tokens of an account list at most ${TOKENS_REPOSITORIES_MAX} repositories together: use scope ALL_REPO, or shorten other lists`,
  },
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
  'mfa-enrolment-over': {
    status: 410,
    message: () => 'The time to activate this MFA token is over. Delete it and add another',
  },
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
  'event-not-found': { status: 404, message: () => 'This repository has no such event' },
  'repository-not-there-then': { status: 404, message: () => 'The repository did not exist at this moment' },
  'repository-not-deleted': { status: 409, message: () => 'The repository is not deleted' },
  'repository-place-lost': { status: 409, message: (r) => `It cannot be undeleted: ${LOST_PLACES[r.lost]}` },
  'repository-too-large-to-purge': {
    status: 422,
    message: () =>
      `A repository of more than ${DROPPING_BYTES_MAX / 1024 ** 3} GiB cannot be purged while it is in use`,
  },
  'repository-rewritten-lately': {
    status: 429,
    message: (r) => `A purge rewrites a repository once an hour: try again in ${spanText(r.waitSeconds)}`,
  },
  'waiting-storage-full': {
    status: 429,
    message: (r) =>
      `What purges removed still takes more than the waiting_storage_bytes of the plan (${r.quota} bytes) until it has left storage: try again in ${spanText(r.waitSeconds)}`,
  },
  'refs-moved-meanwhile': {
    status: 409,
    message: () => 'Refs have been changed since: look again at what would change',
  },
  'refs-moved-too-often': {
    status: 503,
    message: () => 'Others moved the refs whenever the change was decided: nothing was changed, try again',
  },
  'key-in-use': {
    status: 409,
    message: () => 'A request with this Idempotency-Key is under way: nothing was changed by this one, send it again',
  },
  'key-used-otherwise': {
    status: 422,
    message: () => 'This Idempotency-Key was used within 24 hours by a request with another body',
  },
  'keys-during-upgrade': {
    status: 503,
    message: () => 'The service is being upgraded and takes no Idempotency-Key until that is done: try again',
  },
  'pack-object-too-large': { status: 422, message: (r) => r.detail },
  'pack-too-costly': { status: 422, message: (r) => r.detail },
  'pack-too-large': {
    status: 422,
    message: () =>
      `The contents are larger together than a push may be, ${PACK_SIZE_BYTES_MAX} bytes as git stores them`,
  },
  'webhooks-not-notified': {
    status: 409,
    message: () => 'Webhooks are still to be notified of a push: purge again in a minute',
  },
  'restored-ref-collides': {
    status: 409,
    message: (r) => `${r.ref} cannot exist beside a ref that is not restored: restore both`,
  },
  'restored-refs-too-many': {
    status: 409,
    message: () => 'With what is restored the repository would hold more refs than it may: delete others first',
  },
  'objects-expired': {
    status: 410,
    message: (r) => `What was asked for has left storage${r.event === null ? '' : ` with the event ${r.event}`}`,
  },
  'branch-name-invalid': { status: 422, field: 'default_branch', message: (r) => `Not a branch: ${r.reason}` },
  // docs/interface.md, Errors, fixes this text.
  'repository-without-commits': { status: 404, message: () => 'No commit found in the repository' },
  'default-branch-missing': {
    status: 404,
    message: ({ branch, branches, others }) =>
      `The default branch ${branch} does not exist. Branches: ${branches.join(', ')}${others === 0 ? '' : ` and ${others} more`}`,
  },
  'ref-not-found': { status: 404, message: ({ side }) => `Ref not found${side === undefined ? '' : `: ${side}`}` },
  'short-id-ambiguous': {
    status: 422,
    message: ({ digits, commits, more }) =>
      `Several commits begin with ${digits}: ${commits.join(', ')}${more ? ' and others' : ''}`,
  },
  'ref-not-a-commit': { status: 422, message: ({ type }) => `The ref leads to a ${type}, not to a commit` },
  'ref-not-a-tree': { status: 422, message: () => 'The ref leads to a blob: not a tree' },
  'commit-without-patch': {
    status: 422,
    message: () => 'A merge and a commit that changed no file have no patch: read its .diff',
  },
  'comparison-too-costly': {
    status: 422,
    message: () => 'The commits between the two take too long to find: a clone can compare them',
  },
  'moment-in-future': { status: 422, message: () => 'This moment has not come yet' },
  'object-not-found': { status: 404, message: () => 'Object not found' },
  'tree-too-large': {
    status: 422,
    message: () =>
      'A recursive listing has at most 100,000 entries, 32 MiB of trees and paths of 4,096 bytes: list its folders by their ids',
  },
  'files-too-many': {
    status: 422,
    message: () => 'More than 300,000 files, or more than 24 MiB of paths: search below one folder, by its `path`',
  },
  'regex-invalid': { status: 422, message: ({ reason }) => `Not an expression of PCRE: ${reason}` },
  'regex-unavailable': {
    status: 422,
    message: () => 'The git of this service knows no expressions: search for a text',
  },
  'path-not-found': { status: 404, message: () => 'Path not found' },
  'path-not-a-file': { status: 422, message: () => 'The path does not lead to a file' },
  'file-too-large': { status: 403, message: () => 'The file is larger than 64 MiB' },
  'folder-names-too-long': {
    status: 422,
    message: () =>
      'The names and paths of these entries take more than 2 MiB: ask for fewer with limit; a clone has the folder whole',
  },
  'page-paths-too-long': {
    status: 422,
    message: () => 'The paths on this page take more than 2 MiB: ask for fewer items with limit',
  },
  'too-many-archives': {
    status: 429,
    message: () =>
      `An account has at most ${ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX} archives at the same time: wait until one is read`,
  },
  'archives-busy': { status: 503, message: () => 'The service makes too many archives now, try again' },
  'webhook-not-found': { status: 404, message: () => 'Webhook not found' },
  'webhook-delivery-not-found': { status: 404, message: () => 'Webhook delivery not found' },
  'webhook-redelivery-limit-reached': {
    status: 422,
    message: () => `A delivery is made again at most ${WEBHOOK_SERIES_MAX - 1} times`,
  },
  'webhook-deliveries-wait': {
    status: 422,
    message: () =>
      `The account's deliveries of the next ${WEBHOOK_BUDGET_HOURS_MAX} hours are used up (see Usage, deliveries_per_hour)`,
  },
  'webhook-limit-reached': { status: 422, message: () => `An account has at most ${WEBHOOKS_MAX} webhooks` },
  'webhook-events-empty': { status: 422, field: 'events', message: () => 'A webhook listens for at least one event' },
  'webhook-url-refused': { status: 422, field: 'url', message: (r) => TARGET_FAULTS[r.fault] },
  'byo-storage-requires-plan': {
    status: 403,
    message: () => 'Storage buckets of your own need the plan PRO or PLATFORM',
  },
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
  'storage-bucket-not-verified': {
    status: 422,
    message: () => 'The storage bucket is not verified: verify it before repositories use it',
  },
  'storage-bucket-limit-reached': {
    status: 422,
    message: () => `An account has at most ${STORAGE_BUCKETS_MAX} storage buckets`,
  },
  'storage-bucket-name-length': {
    status: 422,
    field: 'name',
    message: () =>
      `A storage bucket's name has 1 to ${STORAGE_BUCKET_NAME_LENGTH_MAX} characters, on one line, without space at its ends`,
  },
  'storage-bucket-name-taken': { status: 409, message: () => 'A storage bucket with this name exists already' },
  'storage-bucket-setting': { status: 422, field: (r) => r.setting, message: (r) => settingText(r.setting, r.fault) },
  'storage-bucket-endpoint-refused': { status: 422, field: 'endpoint_url', message: (r) => TARGET_FAULTS[r.fault] },
  'storage-bucket-place-fixed': {
    status: 422,
    message: (r) => `Provider, bucket, prefix and endpoint cannot change while ${placeHolders(r)}`,
  },
  'storage-bucket-in-use': {
    status: 422,
    message: (r) => `Repositories depend on this storage bucket: ${dependentText(r.repositories)}`,
  },
  'storage-bucket-purged': {
    status: 422,
    message: ({ sizeBytes, waitSeconds }) => {
      const what = sizeBytes === null ? 'layers' : `${sizeBytes} bytes`;
      return `This storage bucket can be deleted or have another place when purges have removed ${what} from it: try again in ${spanText(waitSeconds)}`;
    },
  },
  'storage-bucket-needs-all-repositories': { status: 403, message: () => 'This token lacks the scope ALL_REPO' },
  'storage-bucket-changed': {
    status: 409,
    message: () => 'The settings of the storage bucket were changed before the end: try again',
  },
  'storage-bucket-verification-failed': {
    status: 422,
    message: (r) => `Verification failed at the step ${r.step}: ${r.message}${issuerText(r.issuer)}`,
  },
  'log-export-limit-reached': {
    status: 429,
    message: () =>
      `All exports that may run at the same time are under way, at most ${LOG_EXPORTS_OF_ACCOUNT_MAX} of an account: try again when one has ended`,
  },
  'storage-quota-reached': { status: 422, message: () => "The plan's quota of storage is reached" },
  'ingress-quota-reached': { status: 422, message: () => "The plan's quota of ingress is reached for this month" },
  'transfer-quota-reached': { status: 403, message: () => "The plan's quota of transfer is reached for this month" },
};

const TARGET_FAULTS: { readonly [Fault in TargetFault]: string } = {
  'url-malformed': 'This is not a URL such as https://receiver.example/hook',
  'url-too-long': `A URL has at most ${OUTGOING_URL_LENGTH_MAX} characters`,
  'url-not-https': 'The URL must start with https://',
  'url-with-credentials': 'The URL must not hold a username or a password',
  'own-host': 'The URL must not lead to this service',
  'address-not-public': 'The URL must lead to a public address',
  'peer-not-checked': 'The URL must lead to a public address',
};

/** Unknown repositories of a token that a refusal names. */
export const IDS_SHOWN_MAX = 10;

const SETTING_FORMS: { readonly [Setting in BucketSetting]: string } = {
  auth_mode: 'R2 and MINIO take the mode STATIC_KEYS only',
  bucket_name: 'A bucket has 3 to 63 of a-z, 0-9, dot and hyphen, with a letter or digit at both ends',
  key_prefix: "A prefix has names of A-Za-z0-9!_.*'()=- between single slashes, and none at its start",
  role_arn: 'A role is named like arn:aws:iam::123456789012:role/strata',
  region: 'A region has small letters, digits and single hyphens, such as eu-central-1',
  endpoint_url: 'An endpoint is https://host or https://host:port, without a path',
  access_key_id: 'This is not the id of an access key',
  secret_access_key: 'This is not a secret access key',
};

/** A role's cloud fetches the keys of this service. */
function issuerText(issuer: string | null): string {
  return issuer === null ? '' : `. This service is at ${issuer}; a role needs a public https address without a port`;
}

function settingText(setting: BucketSetting, fault: BucketSettingFault): string {
  return fault === 'missing' ? 'Field required' : SETTING_FORMS[setting];
}

function dependentText({ names, more }: DependentNames): string {
  if (names.length === 0) return 'this token does not see them';
  return more ? `${names.join(', ')} and others` : names.join(', ');
}

function placeHolders({ repositories, deleted }: Extract<Refusal, { code: 'storage-bucket-place-fixed' }>): string {
  if (deleted === undefined) return `repositories depend on them: ${dependentText(repositories)}`;
  const isUsed = repositories.names.length > 0 || repositories.more;
  const used = isUsed ? `repositories depend on them (${dependentText(repositories)}) and ` : '';
  const remedy = 'purge those, or wait until they are no longer kept';
  return `${used}deleted repositories can come back to them (${remedy}): ${dependentText(deleted)}`;
}

function spanText(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  if (seconds < 60) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  return minutes === 1 ? '1 minute' : `${minutes} minutes`;
}

/** Returns the message, without a full stop. */
export function refusalText(refusal: Refusal): string {
  return messageOf(refusal.code, refusal);
}

/** Returns the field of the body at fault; null if no single field is. */
export function refusedField(refusal: Refusal): string | null {
  return fieldOf(refusal.code, refusal);
}

function fieldOf<Code extends RefusalCode>(code: Code, refusal: RefusalOf[Code]): string | null {
  const { field = null } = REFUSALS[code];
  return typeof field === 'function' ? field(refusal) : field;
}

/** The type parameter ties the table's entry to the refusal of the same code. */
function messageOf<Code extends RefusalCode>(code: Code, refusal: RefusalOf[Code]): string {
  return REFUSALS[code].message(refusal);
}
