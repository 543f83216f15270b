/**
 * `log verify --references`: checks that the vault holds the records that events name, and none of erased accounts.
 *
 * Invariants: the check neither prints nor keeps a record's value. A superseded or erased record may be missing, also
 * one that was superseded or erased while the log was read: what seems wrong is looked at twice.
 */
import type { BucketEvent } from '../../account/buckets/events.ts';
import { accountBuckets } from '../../account/buckets/evolve.ts';
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { isEventOf } from '../../account/facet.ts';
import type { TrustRuleEvent } from '../../account/trust-rules/events.ts';
import { accountTrustRules } from '../../account/trust-rules/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, type RecordedEvent } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { parseVaultRef, type VaultField } from '../../kernel/vault-ref.ts';
import { type Vault, VaultError } from '../../ports/vault.ts';

export interface VaultCheck {
  /** The caller passes every readable event of the log, in order. */
  add(event: RecordedEvent): void;
  /**
   * The caller calls this after the last event: only then are the superseded and erased records known. If something
   * seems wrong, `readOn` is called, which adds the events that were appended since, and it is looked at again.
   */
  finish(readOn: () => Promise<void>): Promise<void>;
}

/** The vault records that the events of an account name. */
interface Named {
  email: string | null;
  passwordHash: string | null;
  erased: boolean;
  /** The current records of each webhook. A secret before the last rotation may be gone, and is not checked. */
  readonly webhooks: Map<string, { readonly url: string; readonly secret: string }>;
  /** The current record of each MFA token that has one. */
  readonly mfaTokens: Map<string, { readonly field: 'totp-seed' | 'passkey'; readonly ref: string }>;
  /** The current records of each storage bucket. */
  readonly buckets: Map<string, { readonly place: string; readonly access: string }>;
  /** The current conditions of each trust rule. */
  readonly trustRules: Map<string, string>;
  /** The references of source addresses, each with the first event that names it. */
  readonly addresses: Map<string, string>;
}

/** An erasure destroys the account's key right after its event, so one that was seen half done is over by then. */
export const SECOND_LOOK_MS = 2_000;

export function createVaultCheck(vault: Vault, report: (text: string) => void): VaultCheck {
  const named = new Map<AccountId, Named>();

  const of = (account: AccountId): Named => {
    const known = named.get(account) ?? {
      email: null,
      passwordHash: null,
      erased: false,
      webhooks: new Map(),
      mfaTokens: new Map(),
      buckets: new Map(),
      trustRules: new Map(),
      addresses: new Map(),
    };
    named.set(account, known);
    return known;
  };

  const faultsOf = createRecordCheck(vault);

  return {
    add: (event) => {
      const { accountId, sourceAddressRef, stream, revision } = event;
      if (accountId === null) return;
      if (sourceAddressRef !== null) {
        const { addresses } = of(accountId);
        if (!addresses.has(sourceAddressRef)) addresses.set(sourceAddressRef, `${stream} revision ${revision}`);
      }
      if (categoryOf(stream) === accounts.category) applyAccountEvent(of(accountId), event);
    },
    finish: async (readOn) => {
      const suspects: AccountId[] = [];
      for (const account of named.keys()) if ((await faultsOf(account, of(account))).length > 0) suspects.push(account);
      if (suspects.length === 0) return;
      await readOn();
      for (const account of suspects) for (const text of await faultsOf(account, of(account))) report(text);
    },
  };
}

/** Returns the function that looks for the records of an account, one account at a time. */
function createRecordCheck(vault: Vault): (account: AccountId, its: Named) => Promise<readonly string[]> {
  let faults: string[] = [];
  const fault = (text: string): void => void faults.push(text);

  async function isThere(account: AccountId, field: VaultField, text: string): Promise<boolean> {
    const ref = parseVaultRef(text);
    try {
      return ref !== null && (await vault.disclose(account, field, ref)) !== null;
    } catch (error) {
      if (!(error instanceof VaultError) || error.code !== 'record-tampered') throw error;
      fault(error.message);
      return true;
    }
  }

  async function checkOpen(account: AccountId, its: Named): Promise<void> {
    const { email, passwordHash, addresses } = its;
    for (const [field, ref] of [
      ['email', email],
      ['password-hash', passwordHash],
    ] as const) {
      if (ref !== null && !(await isThere(account, field, ref)))
        fault(`The vault lacks the ${field} of account ${account}`);
    }
    for (const [what, field, ref] of recordsOf(its)) {
      if (!(await isThere(account, field, ref))) fault(`The vault lacks the ${field} of ${what} of account ${account}`);
    }
    for (const [ref, where] of addresses) {
      if (await isThere(account, 'source-address', ref)) continue;
      fault(`${where} names the vault record ${ref} of account ${account}, which is not there`);
    }
  }

  async function checkErased(account: AccountId, { email }: Named): Promise<void> {
    if (email === null || !(await isThere(account, 'email', email))) return;
    fault(`Account ${account} was erased, and the vault still holds its data: erase it again`);
  }

  return async (account, its) => {
    faults = [];
    await (its.erased ? checkErased(account, its) : checkOpen(account, its));
    return faults;
  };
}

/** What a record belongs to, its field and its reference. */
type NamedRecord = readonly [what: string, field: VaultField, ref: string];

function recordsOf({ webhooks, mfaTokens, buckets, trustRules }: Named): readonly NamedRecord[] {
  return [
    ...recordsOfWebhooks(webhooks),
    ...recordsOfMfaTokens(mfaTokens),
    ...recordsOfBuckets(buckets),
    ...[...trustRules].map(([id, ref]): NamedRecord => [`trust rule ${id}`, 'oidc-conditions', ref]),
  ];
}

function recordsOfWebhooks(webhooks: Named['webhooks']): readonly NamedRecord[] {
  return [...webhooks].flatMap(([id, { url, secret }]): NamedRecord[] => [
    [`webhook ${id}`, 'webhook-url', url],
    [`webhook ${id}`, 'webhook-secret', secret],
  ]);
}

function recordsOfMfaTokens(tokens: Named['mfaTokens']): readonly NamedRecord[] {
  return [...tokens].map(([id, { field, ref }]) => [`MFA token ${id}`, field, ref]);
}

function recordsOfBuckets(buckets: Named['buckets']): readonly NamedRecord[] {
  return [...buckets].flatMap(([id, { place, access }]): NamedRecord[] => [
    [`storage bucket ${id}`, 'bucket-place', place],
    [`storage bucket ${id}`, 'bucket-access', access],
  ]);
}

function applyTrustRuleEvent({ trustRules }: Named, event: TrustRuleEvent): void {
  if (event.type === 'TrustRuleDeleted') trustRules.delete(event.data.rule_id);
  else if (event.data.conditions_ref !== undefined) trustRules.set(event.data.rule_id, event.data.conditions_ref);
}

function applyAccountEvent(its: Named, recorded: RecordedEvent): void {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (isEventOf(accountBuckets, event)) return applyBucketEvent(its, event);
  if (isEventOf(accountTrustRules, event)) return applyTrustRuleEvent(its, event);
  switch (event.type) {
    case 'AccountCreated':
      its.email = event.data.email_ref;
      its.passwordHash = event.data.password_hash_ref;
      break;
    case 'PasswordChanged':
      its.passwordHash = event.data.password_hash_ref;
      break;
    case 'EmailChanged':
      its.email = event.data.email_ref;
      break;
    case 'AccountErased':
      its.erased = true;
      break;
    case 'WebhookCreated':
    case 'WebhookUrlChanged': {
      const { webhook_id, url_ref: url, secret_ref: secret } = event.data;
      its.webhooks.set(webhook_id, { url, secret });
      break;
    }
    case 'WebhookSecretRotated': {
      const { webhook_id, secret_ref: secret } = event.data;
      const webhook = its.webhooks.get(webhook_id);
      if (webhook !== undefined) its.webhooks.set(webhook_id, { ...webhook, secret });
      break;
    }
    case 'WebhookDeleted':
      its.webhooks.delete(event.data.webhook_id);
      break;
    case 'TotpEnrolmentBegun':
      its.mfaTokens.set(event.data.token_id, { field: 'totp-seed', ref: event.data.seed_ref });
      break;
    case 'PasskeyActivated':
      its.mfaTokens.set(event.data.token_id, { field: 'passkey', ref: event.data.passkey_ref });
      break;
    case 'MfaTokenDeleted':
      its.mfaTokens.delete(event.data.token_id);
      break;
    case 'MfaReset':
      its.mfaTokens.clear();
      break;
    case 'TotpActivated':
    case 'TotpCodeUsed':
    case 'PasskeyEnrolmentBegun':
    case 'PasskeyUsed':
    case 'PasskeyCounterRegressed':
    case 'MfaTokenRenamed':
    case 'WebhookEventsChanged':
    case 'WebhookActivated':
    case 'WebhookDeactivated':
    case 'Abandoned':
    case 'PlanChanged':
    case 'AccountClosed':
    case 'AccountReopened':
    case 'LogKeyEndorsed':
    case 'LogTailLost':
    case 'MasterKeyRotated':
    case 'RepositoryRebuilt':
    case 'RepositoryCreated':
    case 'RepositoryDescribed':
    case 'RepositoryRenamed':
    case 'RepositoryDeleted':
    case 'RepositoryRestored':
      break;
  }
}

function applyBucketEvent(its: Named, event: BucketEvent): void {
  switch (event.type) {
    case 'StorageBucketCreated': {
      const { bucket_id, place_ref: place, access_ref: access } = event.data;
      its.buckets.set(bucket_id, { place, access });
      break;
    }
    case 'StorageBucketPlaceChanged':
      changeBucket(its, event.data.bucket_id, { place: event.data.place_ref });
      break;
    case 'StorageBucketAccessChanged':
      changeBucket(its, event.data.bucket_id, { access: event.data.access_ref });
      break;
    case 'StorageBucketDeleted':
      its.buckets.delete(event.data.bucket_id);
      break;
    case 'StorageBucketRenamed':
    case 'StorageBucketVerified':
    case 'StorageBucketVerificationFailed':
    case 'DefaultBucketChanged':
      break;
  }
}

function changeBucket({ buckets }: Named, id: string, changed: { place?: string; access?: string }): void {
  const bucket = buckets.get(id);
  if (bucket !== undefined) buckets.set(id, { ...bucket, ...changed });
}
