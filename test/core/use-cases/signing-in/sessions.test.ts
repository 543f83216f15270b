/** Ending sessions: which are removed, and what the log keeps. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { type AccountId, plusMs } from '../../../../core/kernel/ids.ts';
import { recordSignOut, revokeOtherSessions, revokeSession } from '../../../../core/use-cases/signing-in/sessions.ts';
import type { Origin } from '../../../../core/use-cases/signing-in/sign-in.ts';
import { newAccount } from '../../../support/accounts.ts';
import { createMemorySessionStore } from '../../../support/memory/session-store.ts';
import { startNode } from '../../../support/node.ts';
import { watchLog } from '../../../support/watched-log.ts';

const HERE: Origin = { requestId: 'request-2', address: '192.0.2.1', userAgent: 'Browser/1.0' };

async function started() {
  const log = watchLog();
  const node = await startNode(log);
  const context = { ...node, sessions: createMemorySessionStore() };
  const account = await newAccount(node, 'ada');
  const begin = async (owner: AccountId = account): Promise<string> => {
    const now = node.clock.now();
    const handle = randomUUID();
    const refs = { addressRef: null, agentRef: null };
    const times = { createdAt: now, seenAt: now, expiresAt: plusMs(now, 1_000) };
    const status = 'signed-in' as const;
    await context.sessions.add({
      idHash: handle,
      handle,
      account: owner,
      epoch: 0,
      status,
      kept: {},
      ...times,
      ...refs,
    });
    return handle;
  };
  const events = async () => {
    const all = await log.readAll(LOG_START, 1_000);
    return all
      .filter(({ stream }) => stream.startsWith('signIn-'))
      .map(({ type, data, actor }) => ({ type, data, actor }));
  };
  const actor = { kind: 'user', id: account };
  return { context, account, begin, events, actor };
}

test('revokes one session, and says so once in the log', async () => {
  const { context, account, begin, events, actor } = await started();
  const session = await begin();
  assert.equal(await revokeSession(context, HERE, account, session), true);
  assert.equal(await revokeSession(context, HERE, account, session), false);
  assert.deepEqual(await events(), [{ type: 'SessionsRevoked', data: { session_ids: [session] }, actor }]);
});

test("revokes no session of another account, even by a person who knows its session's handle", async () => {
  const { context, account, begin, events } = await started();
  const foreign = await begin(await newAccount(context, 'bob'));
  assert.equal(await revokeSession(context, HERE, account, foreign), false);
  assert.deepEqual(await events(), []);
});

test('revokes all other sessions by one event, and appends none if there are none', async () => {
  const { context, account, begin, events, actor } = await started();
  const session = await begin();
  const others = [await begin(), await begin()];
  await revokeOtherSessions(context, HERE, { account, session });
  await revokeOtherSessions(context, HERE, { account, session });
  assert.deepEqual(await events(), [{ type: 'SessionsRevoked', data: { session_ids: others }, actor }]);
});

test('records a sign-out', async () => {
  const { context, account, begin, events, actor } = await started();
  const session = await begin();
  await recordSignOut(context, HERE, { account, session });
  assert.deepEqual(await events(), [{ type: 'SignedOut', data: { session_id: session }, actor }]);
});
