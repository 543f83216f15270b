/** The list of an account's sessions, with the address and the browser of each. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { type AccountId, plusMs, uuid } from '../../../../core/kernel/ids.ts';
import type { StoredSession } from '../../../../core/ports/session-store.ts';
import { listSessions } from '../../../../core/use-cases/signing-in/list-sessions.ts';
import { createMemorySessionStore } from '../../../support/memory/session-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { createTestClock } from '../../../support/test-clock.ts';

async function started() {
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const sessions = createMemorySessionStore();
  const account = uuid<AccountId>(randomUUID());
  const reads: string[] = [];
  const get: typeof vault.get = async (owner, field, ref) => {
    reads.push(ref);
    return vault.get(owner, field, ref);
  };
  const begin = async (more: Partial<StoredSession> = {}): Promise<string> => {
    const now = clock.now();
    const handle = randomUUID();
    const times = { createdAt: now, seenAt: now, expiresAt: plusMs(now, 1_000) };
    const made = { idHash: handle, handle, account, epoch: 2, status: 'signed-in', kept: {} } as const;
    await sessions.add({ ...made, ...times, addressRef: null, agentRef: null, ...more });
    return handle;
  };
  const list = () => listSessions({ clock, sessions, vault: { get } }, account, 2);
  return { account, vault, begin, list, reads };
}

test('opens the address and the browser of each session, and reads what sessions share once', async () => {
  const { account, vault, begin, list, reads } = await started();
  const addressRef = await vault.put(account, 'source-address', '192.0.2.1');
  const agentRef = await vault.put(account, 'user-agent', 'Browser/1.0');
  await begin({ addressRef, agentRef });
  await begin({ addressRef, agentRef });
  const seen = (await list()).map(({ address, agent }) => [address, agent]);
  assert.deepEqual(seen, [
    ['192.0.2.1', 'Browser/1.0'],
    ['192.0.2.1', 'Browser/1.0'],
  ]);
  assert.equal(reads.length, 2);
});

test('lists a session whose address and browser are not known any more', async () => {
  const { account, vault, begin, list } = await started();
  const addressRef = await vault.put(account, 'source-address', '192.0.2.1');
  const handle = await begin({ addressRef });
  await vault.delete(account, addressRef);
  const [listed] = await list();
  assert.deepEqual([listed?.handle, listed?.address, listed?.agent], [handle, null, null]);
});

test('leaves out sessions of an epoch that is over', async () => {
  const { begin, list } = await started();
  await begin({ epoch: 1 });
  const current = await begin();
  assert.deepEqual(
    (await list()).map(({ handle }) => handle),
    [current],
  );
});
