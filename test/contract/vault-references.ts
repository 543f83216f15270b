/** The contract of core/ports/vault-references.ts, run on every adapter. Each test has its own vault. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { plusMs } from '../../core/kernel/ids.ts';
import type { VaultRef } from '../../core/kernel/vault-ref.ts';
import type { ReadMark } from '../../core/ports/read-mark.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { VaultReferences } from '../../core/ports/vault-references.ts';
import type { Ending } from '../support/cleanup.ts';
import { newAccount, newId, newStream } from '../support/events.ts';

export interface OpenVaultReferences {
  readonly vault: Vault;
  readonly references: VaultReferences;
  /** Makes all records older by the span. */
  age(spanMs: number): Promise<void>;
}

const HOUR_MS = 60 * 60_000;

function newMark(at = 7n): ReadMark {
  const [position, recordAt] = [at, at - 1n] as [LogPosition, LogPosition];
  return { position, record: { position: recordAt, stream: newStream(), revision: 3, eventId: newId() } };
}

/** Declares the suite. */
export function vaultReferencesContract(
  adapter: string,
  open: (context: Ending) => Promise<OpenVaultReferences>,
): void {
  describe(`the references to the vault on ${adapter}`, () => {
    const removed = async (references: VaultReferences, agoMs: number): Promise<readonly VaultRef[]> => {
      const found = await references.removeUnnamed(plusMs(await references.now(), -agoMs), 100);
      return found.map(({ ref }) => ref);
    };

    test('keep how far the log was read, and the mark may move back', async (t) => {
      const { references } = await open(t);
      assert.equal(await references.readUpTo(), null);
      for (const mark of [newMark(), newMark(9_007_199_254_740_993n), newMark(1n)]) {
        await references.note(new Set(), mark);
        assert.deepEqual(await references.readUpTo(), mark);
        await references.note(new Set(), null);
        assert.deepEqual(await references.readUpTo(), mark);
      }
    });

    test('remove only a record that no event named and that was not put again in time', async (t) => {
      const { vault, references, age } = await open(t);
      const account = newAccount();
      const named = await vault.put(account, 'email', 'a@example.org');
      const unnamed = await vault.put(account, 'password-hash', 'hash');
      const putAgain = await vault.put(account, 'source-address', '192.0.2.1');
      await references.note(new Set([named, 'f'.repeat(64) as VaultRef]), newMark());
      await age(25 * HOUR_MS);
      assert.equal(await vault.put(account, 'source-address', '192.0.2.1'), putAgain);
      const found = await references.removeUnnamed(plusMs(await references.now(), -24 * HOUR_MS), 100);
      assert.deepEqual(found, [{ account, field: 'password-hash', ref: unnamed }]);
      assert.equal(await vault.get(account, 'password-hash', unnamed), null);
      assert.equal(await vault.get(account, 'email', named), 'a@example.org');
      assert.equal(await vault.get(account, 'source-address', putAgain), '192.0.2.1');
      assert.deepEqual(await removed(references, 24 * HOUR_MS), []);
    });

    test('keep a record permanently after an event named it, also if the log is read again from its start', async (t) => {
      const { vault, references, age } = await open(t);
      const ref = await vault.put(newAccount(), 'email', 'a@example.org');
      await references.note(new Set([ref]), newMark());
      await references.note(new Set(), newMark(1n));
      await age(1_000 * HOUR_MS);
      assert.deepEqual(await removed(references, 24 * HOUR_MS), []);
    });

    test('remove at most the requested number of records in one call', async (t) => {
      const { vault, references, age } = await open(t);
      const account = newAccount();
      for (let n = 0; n < 5; n += 1) await vault.put(account, 'user-agent', `agent ${n}`);
      await age(25 * HOUR_MS);
      const putBefore = plusMs(await references.now(), -24 * HOUR_MS);
      const counts: number[] = [];
      for (let n = 0; n < 4; n += 1) counts.push((await references.removeUnnamed(putBefore, 2)).length);
      assert.deepEqual(counts, [2, 2, 1, 0]);
    });
  });
}
