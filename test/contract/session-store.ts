/** What every store of sessions must do. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, test } from 'vitest';
import { type AccountId, plusMs, timestamp, uuid } from '../../core/kernel/ids.ts';
import { PENDING_SIGN_INS_MAX, SESSIONS_MAX } from '../../core/kernel/limits.ts';
import { vaultRef } from '../../core/kernel/vault-ref.ts';
import type { SessionStore, StoredSession } from '../../core/ports/session-store.ts';
import type { Ending } from '../support/cleanup.ts';

const NOW = timestamp('2026-11-22T10:00:00.000Z');
const HOUR_MS = 60 * 60_000;

export function sessionStoreContract(name: string, open: (context: Ending) => Promise<SessionStore>): void {
  describe(`the session store on ${name}`, () => {
    let store: SessionStore;
    let account: AccountId;
    let made = 0;

    beforeEach(async (context) => {
      store = await open(context);
      account = uuid<AccountId>(randomUUID());
    });

    const session = (more: Partial<StoredSession> = {}): StoredSession => {
      made += 1;
      return {
        idHash: made.toString(16).padStart(64, '0'),
        handle: randomUUID(),
        account,
        epoch: 3,
        status: 'signed-in',
        kept: {},
        createdAt: plusMs(NOW, made),
        seenAt: plusMs(NOW, made),
        expiresAt: plusMs(NOW, HOUR_MS),
        addressRef: vaultRef('a'.repeat(64)),
        agentRef: null,
        ...more,
      };
    };
    const add = async (more: Partial<StoredSession> = {}): Promise<StoredSession> => {
      const added = session(more);
      await store.add(added);
      return added;
    };

    test('finds a session by the digest of its id, as it was added', async () => {
      const added = await add({ kept: { challenge: 'é"\\' }, agentRef: vaultRef('b'.repeat(64)) });
      assert.deepEqual(await store.find(added.idHash, NOW), added);
      assert.equal(await store.find('f'.repeat(64), NOW), null);
    });

    test('does not find a session from its expiry on', async () => {
      const { idHash } = await add({ expiresAt: plusMs(NOW, 1) });
      assert.notEqual(await store.find(idHash, NOW), null);
      assert.equal(await store.find(idHash, plusMs(NOW, 1)), null);
    });

    test('replaces what a session keeps, and notes when and where it was seen, each without the other', async () => {
      const added = await add({ kept: { former: '1' } });
      const seenAt = plusMs(NOW, HOUR_MS);
      const seen = { ...added, seenAt, expiresAt: plusMs(seenAt, HOUR_MS), addressRef: null };
      await store.keep(added.idHash, { step: '2' });
      // Imitates a request that read the session before it kept something else.
      await store.noteSeen(seen);
      assert.deepEqual(await store.find(added.idHash, NOW), { ...seen, kept: { step: '2' } });
      await store.keep(added.idHash, {});
      assert.deepEqual(await store.find(added.idHash, NOW), { ...seen, kept: {} });
    });

    test('does not bring a removed session back when a request that was under way writes to it', async () => {
      const added = await add();
      await store.remove(added.idHash);
      await store.noteSeen(added);
      await store.keep(added.idHash, {});
      assert.equal(await store.find(added.idHash, NOW), null);
    });

    test('lists the valid sessions of one account that were signed in to, last seen first', async () => {
      const older = await add();
      const newer = await add();
      await add({ status: 'pending' });
      await add({ expiresAt: NOW });
      await add({ account: uuid<AccountId>(randomUUID()) });
      assert.deepEqual(await store.list(account, NOW), [newer, older]);
    });

    test('revokes one session by its handle, of its own account only', async () => {
      const first = await add();
      const second = await add();
      assert.equal(await store.revoke(uuid<AccountId>(randomUUID()), first.handle), false);
      assert.equal(await store.revoke(account, first.handle), true);
      assert.equal(await store.revoke(account, first.handle), false);
      assert.deepEqual(await store.list(account, NOW), [second]);
    });

    test('revokes all sessions of the account but one, pending ones too', async () => {
      const kept = await add();
      const other = await add();
      const pending = await add({ status: 'pending' });
      const foreign = await add({ account: uuid<AccountId>(randomUUID()) });
      const revoked = await store.revokeOthers(account, kept.handle);
      assert.deepEqual([...revoked].sort(), [other.handle, pending.handle].sort());
      const left = await Promise.all([kept, other, pending, foreign].map(({ idHash }) => store.find(idHash, NOW)));
      assert.deepEqual(
        left.map((found) => found !== null),
        [true, false, false, true],
      );
      assert.deepEqual(await store.revokeOthers(account, kept.handle), []);
    });

    for (const [status, max] of [
      ['signed-in', SESSIONS_MAX],
      ['pending', PENDING_SIGN_INS_MAX],
    ] as const) {
      test(`keeps the newest ${max} sessions of an account that are ${status}`, async () => {
        const other = await add({ status: status === 'pending' ? 'signed-in' : 'pending' });
        const added: StoredSession[] = [];
        for (let count = 0; count < max; count += 1) added.push(await add({ status }));
        const left = async (): Promise<number> => {
          const found = await Promise.all(added.map(({ idHash }) => store.find(idHash, NOW)));
          return found.filter((one) => one !== null).length;
        };
        assert.equal(await left(), max);
        added.push(await add({ status }));
        assert.equal(await left(), max);
        assert.equal(await store.find(added[0]?.idHash ?? '', NOW), null);
        assert.notEqual(await store.find(other.idHash, NOW), null);
      });
    }

    test("removes every session of an erased account, and nobody else's", async () => {
      const own = [await add(), await add({ status: 'pending' })];
      const other = await add({ account: uuid<AccountId>(randomUUID()) });
      await store.forgetAccount(account);
      for (const { idHash } of own) assert.equal(await store.find(idHash, NOW), null);
      assert.deepEqual(await store.find(other.idHash, NOW), other);
    });

    test('removes expired sessions, at most as many as asked', async () => {
      const valid = await add();
      for (let count = 0; count < 3; count += 1) await add({ expiresAt: NOW });
      assert.equal(await store.removeExpired(NOW, 2), 2);
      assert.equal(await store.removeExpired(NOW, 2), 1);
      assert.deepEqual(await store.find(valid.idHash, NOW), valid);
    });
  });
}
