/** The contract of core/ports/sign-ins.ts, a part of that of the read models. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { streamName } from '../../core/kernel/envelope.ts';
import { type AccountId, timestamp } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import { type SignInsReader, UNSUMMED_REFUSED_READS_MAX, UNSUMMED_SIGN_INS_MAX } from '../../core/ports/sign-ins.ts';
import type { UsageLedgerReader } from '../../core/ports/usage-ledger.ts';
import type { Ending } from '../support/cleanup.ts';
import { type Appender, newUuid } from '../support/read-models.ts';

type Reads = SignInsReader & Pick<UsageLedgerReader, 'usageLedgerCaughtUp'>;
type Open = (context: Ending) => Promise<{ readonly append: Appender; readonly reads: Reads }>;

const NOTHING = { signIns: [], moreSignIns: 0, failures: [], refusedReads: [] };

const day = (append: Appender): string => append.now.slice(0, 10);

function signIn(append: Appender, account: AccountId, type: string, data: JsonObject): Promise<unknown> {
  const stream = streamName('signIn', `${account}-${day(append).replaceAll('-', '')}`);
  return append.append(stream, account, type, { user_agent_ref: null, ...data });
}

function refused(append: Appender, account: AccountId, refused_reads: readonly JsonObject[]): Promise<unknown> {
  return append.append(streamName('transfer', `${account}-node`), account, 'TransferRecorded', {
    ...{ minute: append.now, sent_bytes: 0, received_bytes: 0, by_reader: [], refused_reads },
  });
}

function sum(append: Appender, account: AccountId, through: string): Promise<unknown> {
  return append.append(streamName('usage', account), account, 'UsageRecorded', {
    ...{ day: through, through: null, transfer: [], webhook_attempts: 0, sign_in_failures: 0, details: null },
  });
}

export function signInsContract(open: Open): void {
  test('name who signed in, newest first, and count what failed and was refused by its reason', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const other = await append.account('bob');
    const token = newUuid();
    const agent = 'b'.repeat(64);
    append.sourceAddressRef = 'a'.repeat(64);
    await signIn(append, account, 'SignedIn', { factors: ['password'], user_agent_ref: agent });
    append.now = timestamp('2026-11-21T10:00:01.000Z');
    append.sourceAddressRef = null;
    await signIn(append, account, 'SignedIn', { factors: ['password', 'totp'] });
    await signIn(append, account, 'SignInFailed', { factor: 'totp', reason: 'mfa-code-wrong' });
    for (let n = 0; n < 2; n += 1) {
      await signIn(append, account, 'SignInFailed', { factor: 'password', reason: 'password-wrong' });
    }
    await signIn(append, account, 'SignedOut', { session_id: 'x' });
    const one = { token_id: token, reason: 'scope-missing' };
    await refused(append, account, [
      { ...one, count: 2 },
      { ...one, reason: 'grant-missing', count: 1 },
    ]);
    await refused(append, account, [
      { ...one, count: 5 },
      { token_id: null, reason: 'token-revoked', count: 3 },
    ]);
    await reads.usageLedgerCaughtUp(append.last);
    assert.deepEqual(await reads.unsummedSignIns(account), {
      signIns: [
        { at: '2026-11-21T10:00:01.000Z', factors: ['password', 'totp'], sourceAddressRef: null, userAgentRef: null },
        {
          ...{ at: '2026-11-21T10:00:00.000Z', factors: ['password'] },
          ...{ sourceAddressRef: 'a'.repeat(64), userAgentRef: agent },
        },
      ],
      moreSignIns: 0,
      failures: [
        { factor: 'password', reason: 'password-wrong', count: 2 },
        { factor: 'totp', reason: 'mfa-code-wrong', count: 1 },
      ],
      refusedReads: [
        { tokenId: token, reason: 'scope-missing', count: 7 },
        { tokenId: null, reason: 'token-revoked', count: 3 },
        { tokenId: token, reason: 'grant-missing', count: 1 },
      ],
    });
    assert.deepEqual(await reads.unsummedSignIns(other), NOTHING);
  });

  test('lack what the daily sums hold, and have what was appended after them', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    const failed = () => signIn(append, account, 'SignInFailed', { factor: 'password', reason: 'password-wrong' });
    const counts = async () => {
      await reads.usageLedgerCaughtUp(append.last);
      const { failures, refusedReads } = await reads.unsummedSignIns(account);
      return [...failures, ...refusedReads].map(({ count }) => count);
    };
    await failed();
    await refused(append, account, [{ token_id: newUuid(), reason: 'scope-missing', count: 4 }]);
    assert.deepEqual(await counts(), [1, 4]);
    append.now = timestamp('2026-11-22T00:00:30.000Z');
    await failed();
    await failed();
    assert.deepEqual(await counts(), [3, 4]);
    await sum(append, account, '2026-11-21');
    assert.deepEqual(await counts(), [2]);
    // A node with another clock: it counts with the next sums.
    append.now = timestamp('2026-11-21T23:59:59.000Z');
    await failed();
    assert.deepEqual(await counts(), [3]);
    await sum(append, account, '2026-11-22');
    assert.deepEqual(await counts(), []);
  });

  test('name as many sign-ins and tokens as the limits, and count the others', async (context) => {
    const { append, reads } = await open(context);
    const account = await append.account('ada');
    for (let n = 0; n < UNSUMMED_SIGN_INS_MAX + 3; n += 1) {
      await signIn(append, account, 'SignedIn', { factors: ['password'] });
    }
    const often = { token_id: newUuid(), reason: 'scope-missing', count: 9 };
    const once = Array.from({ length: UNSUMMED_REFUSED_READS_MAX + 4 }, () => ({
      ...{ token_id: newUuid(), reason: 'scope-missing', count: 1 },
    }));
    await refused(append, account, [...once, often]);
    await reads.usageLedgerCaughtUp(append.last);
    const { signIns, moreSignIns, refusedReads } = await reads.unsummedSignIns(account);
    assert.deepEqual([signIns.length, moreSignIns], [UNSUMMED_SIGN_INS_MAX, 3]);
    assert.equal(refusedReads.length, UNSUMMED_REFUSED_READS_MAX + 1);
    assert.deepEqual(refusedReads[0], { tokenId: often.token_id, reason: 'scope-missing', count: 9 });
    assert.deepEqual(
      refusedReads.find(({ tokenId }) => tokenId === null),
      { tokenId: null, reason: 'scope-missing', count: 5 },
    );
  });
}
