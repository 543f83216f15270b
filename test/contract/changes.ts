/** The contract of `ChangesReader` in core/ports/usage.ts, a part of that of the read models. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, timestamp } from '../../core/kernel/ids.ts';
import type { ChangesProgress, ChangesReader } from '../../core/ports/usage.ts';
import type { Ending } from '../support/cleanup.ts';
import { type Appender, newUuid } from '../support/read-models.ts';

type Open = (context: Ending) => Promise<{
  readonly append: Appender;
  readonly reads: ChangesReader & ChangesProgress;
}>;

export function changesContract(open: Open): void {
  test('count a request once, in the month of its first event, whatever the streams that it appended to', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const changesOf = async (of: AccountId = account): Promise<number> => {
      await reads.changesCaughtUp(append.last);
      return reads.changesOf(of);
    };
    assert.equal(await changesOf(), 0, 'the service itself made the account');
    append.actor = { kind: 'user', id: account };
    const request = (): void => {
      append.requestId = newUuid();
    };
    request();
    append.now = timestamp('2026-11-30T23:59:59.999Z');
    const repository = await append.repository(account, 'made');
    append.now = timestamp('2026-12-01T00:00:00.000Z');
    await append.push(account, repository);
    assert.equal(await changesOf(), 0);
    append.now = timestamp('2026-11-30T23:59:59.999Z');
    assert.equal(await changesOf(), 1);
    append.now = timestamp('2026-12-01T00:00:00.000Z');
    request();
    await append.push(account, repository);
    request();
    await append.append(streamName('refUpdates', newUuid()), account, 'RefUpdatesPart', { updates: [] });
    await append.push(account, repository);
    assert.equal(await changesOf(), 2);
    assert.equal(await changesOf(newUuid()), 0);
  });

  test('count those of tokens, people, trust rules, sign-ups and device logins, and nothing else', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const repository = await append.repository(account, 'made');
    const appended = async (append_: () => Promise<unknown>): Promise<number> => {
      await reads.changesCaughtUp(append.last);
      const before = await reads.changesOf(account);
      append.requestId = newUuid();
      await append_();
      await reads.changesCaughtUp(append.last);
      return (await reads.changesOf(account)) - before;
    };
    const push = () => append.push(account, repository);
    for (const [kind, id, counted] of [
      ['token', newUuid(), 1],
      ['user', account, 1],
      ['trust_rule', newUuid(), 1],
      ['system', 'sign-up', 1],
      ['admin', 'account set-plan', 0],
      ['system', 'layer-compaction', 0],
      ['system', 'finish-deletions', 0],
      ['system', 'device-login', 0],
    ] as const) {
      append.actor = { kind, id };
      assert.equal(await appended(push), counted, `${kind} ${id}`);
    }
    const login = streamName('deviceSession', newUuid());
    const claim = { token_id: newUuid(), secret_hash: '0'.repeat(64), token_prefix: 'strata_1aBc' };
    assert.equal(await appended(() => append.append(login, account, 'DeviceLoginClaimed', claim)), 1);
    assert.equal(await appended(() => append.append(login, account, 'DeviceLoginClosed', {})), 0);
    append.actor = { kind: 'user', id: account };
    const day = streamName('signIn', `${account}-20261121`);
    const signedIn = () => append.append(day, account, 'SignedIn', { factors: ['password'], user_agent_ref: null });
    assert.equal(await appended(signedIn), 0, 'an operational event');
  });
}
