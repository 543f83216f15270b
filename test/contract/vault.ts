/** The contract of core/ports/vault.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { VaultRef } from '../../core/kernel/vault-ref.ts';
import type { Vault } from '../../core/ports/vault.ts';
import { newAccount } from '../support/events.ts';

export interface OpenVault {
  readonly vault: Vault;
  close(): Promise<void>;
}

/** Declares the suite; `open` is called once. */
export function vaultContract(adapter: string, open: () => Promise<OpenVault>): void {
  describe(`the vault on ${adapter}`, () => {
    let vault: Vault;
    let close: () => Promise<void>;
    beforeAll(async () => {
      ({ vault, close } = await open());
    });
    afterAll(() => close());

    test('returns the value that was put', async () => {
      const account = newAccount();
      for (const value of ['', 'a@example.org', '\0 ünï \u{1f600}', 'x'.repeat(100_000)]) {
        const ref = await vault.put(account, 'email', value);
        assert.match(ref, /^[0-9a-f]{64}$/);
        assert.equal(await vault.get(account, 'email', ref), value);
      }
    });

    test('names a record by a commitment that an auditor can compute', async () => {
      const account = newAccount();
      const ref = await vault.put(account, 'source-address', '192.0.2.1');
      const disclosed = await vault.disclose(account, 'source-address', ref);
      assert.ok(disclosed !== null);
      assert.match(disclosed.nonce, /^[0-9a-f]{64}$/);
      const commitment = createHash('sha256').update(Buffer.from(disclosed.nonce, 'hex')).update(disclosed.value);
      assert.equal(commitment.digest('hex'), ref);
    });

    test('keeps one record for an account, a field and a value, also against concurrent puts', async () => {
      const account = newAccount();
      const refs = await Promise.all(Array.from({ length: 10 }, () => vault.put(account, 'user-agent', 'git/2.47')));
      assert.equal(new Set(refs).size, 1);
      assert.equal(await vault.put(account, 'user-agent', 'git/2.47'), refs[0]);
      assert.notEqual(await vault.put(account, 'user-agent', 'git/2.48'), refs[0]);
      assert.notEqual(await vault.put(account, 'source-address', 'git/2.47'), refs[0]);
      assert.notEqual(await vault.put(newAccount(), 'user-agent', 'git/2.47'), refs[0]);
    });

    test('reports whether any account has a record of a field', async () => {
      assert.equal(await vault.holds('bucket-access'), false);
      const account = newAccount();
      const ref = await vault.put(account, 'bucket-access', 'k');
      assert.equal(await vault.holds('bucket-access'), true);
      await vault.delete(account, ref);
      assert.equal(await vault.holds('bucket-access'), false);
      const erased = newAccount();
      await vault.put(erased, 'bucket-access', 'k');
      await vault.eraseAccount(erased);
      assert.equal(await vault.holds('bucket-access'), false);
    });

    test('returns a record only for the account and field that it was put for', async () => {
      const account = newAccount();
      const ref = await vault.put(account, 'webhook-secret', 's3cret');
      assert.equal(await vault.get(account, 'totp-seed', ref), null);
      assert.equal(await vault.get(newAccount(), 'webhook-secret', ref), null);
      assert.equal(await vault.get(account, 'webhook-secret', '0'.repeat(64) as VaultRef), null);
      assert.equal(await vault.disclose(account, 'totp-seed', ref), null);
    });

    test('discloses many records together: those of the account, each in its field', async () => {
      const account = newAccount();
      const email = await vault.put(account, 'email', 'a@example.org');
      const secret = await vault.put(account, 'webhook-secret', 's3cret');
      const theirs = await vault.put(newAccount(), 'email', 'b@example.org');
      const asked = [email, secret, theirs].map((ref) => ({ field: 'email', ref }) as const);
      const found = await vault.discloseAll(account, asked);
      assert.deepEqual(found, new Map([[email, await vault.disclose(account, 'email', email)]]));
      assert.deepEqual(await vault.discloseAll(account, []), new Map());
      await vault.eraseAccount(account);
      assert.deepEqual(await vault.discloseAll(account, asked), new Map());
    });

    test('deletes one record and no other', async () => {
      const account = newAccount();
      const superseded = await vault.put(account, 'webhook-url', 'https://example.org/1');
      const current = await vault.put(account, 'webhook-url', 'https://example.org/2');
      await vault.delete(account, superseded);
      await vault.delete(account, superseded);
      await vault.delete(newAccount(), current);
      assert.equal(await vault.get(account, 'webhook-url', superseded), null);
      assert.equal(await vault.get(account, 'webhook-url', current), 'https://example.org/2');
      const again = await vault.put(account, 'webhook-url', 'https://example.org/1');
      assert.notEqual(again, superseded);
    });

    test('returns nothing of an erased account, and refuses puts for it', async () => {
      const [account, other] = [newAccount(), newAccount()];
      const ref = await vault.put(account, 'email', 'a@example.org');
      const kept = await vault.put(other, 'email', 'a@example.org');
      await vault.eraseAccount(account);
      await vault.eraseAccount(account);
      assert.equal(await vault.get(account, 'email', ref), null);
      assert.equal(await vault.disclose(account, 'email', ref), null);
      await assert.rejects(vault.put(account, 'email', 'a@example.org'), { code: 'account-erased' });
      assert.equal(await vault.get(other, 'email', kept), 'a@example.org');
      const unknown = newAccount();
      await vault.eraseAccount(unknown);
      await assert.rejects(vault.put(unknown, 'email', 'a@example.org'), { code: 'account-erased' });
    });

    test('returns a stable fingerprint of a value that is not its plain hash', async () => {
      const fingerprint = await vault.fingerprint('email', 'a@example.org');
      assert.match(fingerprint, /^[0-9a-f]{64}$/);
      assert.equal(await vault.fingerprint('email', 'a@example.org'), fingerprint);
      assert.notEqual(await vault.fingerprint('email', 'b@example.org'), fingerprint);
      assert.notEqual(fingerprint, createHash('sha256').update('a@example.org').digest('hex'));
    });
  });
}
