/** Which vault records are opened to auditors, against every event that there is. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { base64OfHex } from '../../../core/audit/base64.ts';
import { heldMembers, openableReferences } from '../../../core/audit/openings.ts';
import { EVENT_CATALOGUE } from '../../../core/catalogue.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { parseVaultRef } from '../../../core/kernel/vault-ref.ts';
import { parseHash } from '../../../core/ports/account-log.ts';
import { goldenEvents } from '../../support/golden.ts';

const RECORD = goldenEvents().filter(({ category, event }) => EVENT_CATALOGUE[category]?.[event.type]?.record === true);

/** The paths of members that are named as references, or hold one under another name. */
function referenceMembers(value: JsonObject, prefix = ''): string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const path = prefix + name;
    if (/_refs?$/.test(name)) return [path];
    if (typeof member === 'object' && member !== null && !Array.isArray(member)) {
      return referenceMembers(member as JsonObject, `${path}.`);
    }
    return [];
  });
}

const REF = 'a'.repeat(64);
const opened = (type: string, data: JsonObject, sourceAddressRef: string | null = null) =>
  openableReferences({ type, data, sourceAddressRef }).map(({ field, ref }) => `${field} ${ref.slice(0, 1)}`);

describe('the openings of an entry', () => {
  test('are decided for every member of every record event that is named a reference', () => {
    const forgotten = RECORD.flatMap(({ event }) =>
      referenceMembers(event.data)
        .filter((member) => !heldMembers(event.type).includes(member))
        .map((member) => `${event.type}: ${member}`),
    );
    assert.deepEqual(forgotten, []);
  });

  test('are of members that an event of the type has', () => {
    for (const { event } of RECORD) {
      const types = RECORD.filter((other) => other.event.type === event.type);
      const members = new Set(types.flatMap((other) => referenceMembers(other.event.data)));
      for (const member of heldMembers(event.type)) assert.ok(members.has(member), `${event.type} has no ${member}`);
    }
  });

  test('hold no secret: a hostile administrator of an account gets no password hash, seed, webhook secret or key', () => {
    assert.deepEqual(opened('AccountCreated', { email_ref: REF, password_hash_ref: 'b'.repeat(64) }), ['email a']);
    assert.deepEqual(opened('PasswordChanged', { password_hash_ref: REF }), []);
    assert.deepEqual(opened('TotpEnrolmentBegun', { seed_ref: REF }), []);
    for (const type of ['WebhookCreated', 'WebhookUrlChanged', 'WebhookSecretRotated']) {
      assert.deepEqual(opened(type, { secret_ref: REF }), []);
    }
    for (const type of ['StorageBucketCreated', 'StorageBucketAccessChanged']) {
      assert.deepEqual(opened(type, { auth_mode: 'STATIC_KEYS', access_ref: REF, removed_ref: REF }), []);
      assert.deepEqual(opened(type, { auth_mode: 'OIDC', access_ref: REF }), ['bucket-access a']);
    }
  });

  test('hold the source address, lists of references and those of nested members', () => {
    assert.deepEqual(opened('PasswordChanged', { password_hash_ref: REF }, 'c'.repeat(64)), ['source-address c']);
    assert.deepEqual(opened('StorageBucketDeleted', { removed_refs: [REF, 'b'.repeat(64)] }), [
      'bucket-place a',
      'bucket-place b',
    ]);
    const request = { hostname_ref: REF, address_ref: 'b'.repeat(64) };
    assert.deepEqual(opened('DeviceLoginGranted', { request }), ['hostname a', 'source-address b']);
    assert.deepEqual(opened('DeviceLoginGranted', { request: null }), [], 'of an older version');
    const details = { source_address_refs: [REF], user_agent_refs: ['b'.repeat(64)] };
    assert.deepEqual(opened('UsageRecorded', { details }), ['source-address a', 'user-agent b']);
    assert.deepEqual(opened('UsageRecorded', { details: null }), [], 'of an older version');
    assert.deepEqual(opened('TrustRuleChanged', { removed_ref: null }), []);
  });

  test('are of texts that have the form of a reference', () => {
    assert.equal(parseVaultRef(REF), REF);
    assert.deepEqual(opened('EmailChanged', { email_ref: 'nobody@example.org' }), []);
  });
});

test('hashes are written in base64 as Node writes them', () => {
  for (const text of ['', 'a', 'b', 'c']) {
    const hash = parseHash(digest.sha256(text));
    assert.equal(base64OfHex(hash), Buffer.from(hash, 'hex').toString('base64'));
  }
});
