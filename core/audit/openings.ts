/**
 * Which vault records an event names, and which of them are shown to the account's auditors beside the event.
 *
 * Invariants: every member of a record event that holds a vault reference is in the table, or the service does not
 * say what the reference commits to. A secret has no field here, so no reader of openings can ask the vault for one.
 */
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../kernel/json.ts';
import { parseVaultRef, type VaultField, type VaultRef } from '../kernel/vault-ref.ts';
import type { EntryEvent } from './entry.ts';

/** Personal data that is no secret. Access to a bucket is one of them only if it is a role. */
export type OpenableField = Exclude<VaultField, 'password-hash' | 'webhook-secret' | 'totp-seed'>;

/** The field of a member's records. `secret`: it is never shown. `role`: it is shown only if the event says OIDC. */
type Held = Exclude<OpenableField, 'bucket-access'> | 'secret' | 'role';

/** By the type of the event and the path of the member. A list of references is named like a single one. */
const HELD: { readonly [type: string]: { readonly [member: string]: Held } } = {
  AccountCreated: { email_ref: 'email', password_hash_ref: 'secret' },
  PasswordChanged: { password_hash_ref: 'secret' },
  EmailChanged: { email_ref: 'email' },
  WebhookCreated: { url_ref: 'webhook-url', secret_ref: 'secret' },
  WebhookUrlChanged: { url_ref: 'webhook-url', secret_ref: 'secret' },
  WebhookSecretRotated: { secret_ref: 'secret' },
  TotpEnrolmentBegun: { seed_ref: 'secret' },
  PasskeyActivated: { passkey_ref: 'passkey' },
  // What is removed may be the key of a TOTP app as well, which the vault does not return as a passkey.
  MfaTokenDeleted: { removed_ref: 'passkey' },
  MfaReset: { removed_refs: 'passkey' },
  StorageBucketCreated: { place_ref: 'bucket-place', access_ref: 'role' },
  StorageBucketPlaceChanged: { place_ref: 'bucket-place', removed_ref: 'bucket-place' },
  // The event does not say whether the access before it was a role.
  StorageBucketAccessChanged: { access_ref: 'role', removed_ref: 'secret' },
  StorageBucketDeleted: { removed_refs: 'bucket-place' },
  TrustRuleCreated: { conditions_ref: 'oidc-conditions' },
  TrustRuleChanged: { conditions_ref: 'oidc-conditions', removed_ref: 'oidc-conditions' },
  TrustRuleDeleted: { removed_ref: 'oidc-conditions' },
  AccessTokenExchanged: { subject_ref: 'oidc-subject' },
  UsageRecorded: { 'details.source_address_refs': 'source-address', 'details.user_agent_refs': 'user-agent' },
  // Reserved: no record is named yet.
  RefsUpdated: { certificate_ref: 'secret' },
  DeviceLoginGranted: { 'request.hostname_ref': 'hostname', 'request.address_ref': 'source-address' },
  DeviceLoginDenied: { 'request.hostname_ref': 'hostname', 'request.address_ref': 'source-address' },
  // No account's: the records are those of the session itself, which nobody's log has.
  DeviceLoginRequested: { hostname_ref: 'secret', address_ref: 'secret' },
};

/** A reference that an event holds, and the field that its record is read as. */
export interface OpenableReference {
  readonly ref: VaultRef;
  readonly field: OpenableField;
}

/** Returns the references of an event that are opened beside it, while their records are there. */
export function openableReferences(event: Pick<EntryEvent, 'type' | 'data' | 'sourceAddressRef'>): OpenableReference[] {
  const { type, data, sourceAddressRef } = event;
  const named = Object.entries(HELD[type] ?? {}).flatMap(([member, held]) => {
    const field = fieldOf(held, data);
    return field === null ? [] : referencesAt(data, member).map((ref) => ({ ref, field }));
  });
  const address = sourceAddressRef === null ? null : parseVaultRef(sourceAddressRef);
  return address === null ? named : [{ ref: address, field: 'source-address' }, ...named];
}

function fieldOf(held: Held, data: JsonObject): OpenableField | null {
  if (held === 'secret') return null;
  if (held === 'role') return data['auth_mode'] === 'OIDC' ? 'bucket-access' : null;
  return held;
}

function referencesAt(data: JsonObject, member: string): VaultRef[] {
  let value: JsonValue = data;
  for (const name of member.split('.')) {
    if (!isJsonObject(value)) return [];
    value = value[name] ?? null;
  }
  const texts = isJsonArray(value) ? value : [value];
  return texts.flatMap((text) => (typeof text === 'string' ? (parseVaultRef(text) ?? []) : []));
}

/** Returns the members of an event's data that the table knows, for the test that compares it with all events. */
export function heldMembers(type: string): readonly string[] {
  return Object.keys(HELD[type] ?? {});
}
