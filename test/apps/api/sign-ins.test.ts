/** Who signed in, what failed and which reads were refused, over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { SIGN_IN_DAYS_LIMIT_MAX } from '../../../apps/api/limits.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { recordUsage } from '../../../core/use-cases/metering/record-usage.ts';
import { recordFailure, recordSignIn } from '../../../core/use-cases/signing-in/sign-in.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

const HERE = { requestId: 'request-1', address: '192.0.2.7', userAgent: 'Firefox/1' };
const DAY_MS = 24 * 60 * 60_000;
const NEVER = new AbortController().signal;
const NOTHING = { sign_ins: [], more_sign_ins: 0, failures: [], refused_reads: [], openings: {} };

describe('GET /v1/account/sign-ins', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    account = await fixture.account('ada');
    token = await fixture.token(account);
    await fixture.repository(account, 'engine');
    await fixture.repository(account, 'other');
  });
  afterAll(() => fixture.close());

  const get = (query = '', by: TestToken | null = token) => fixture.request('GET', `/v1/account/sign-ins${query}`, by);

  async function nextDay(): Promise<void> {
    fixture.clock.advance(DAY_MS);
    const { events, ids, written } = fixture.context;
    await recordUsage({ events, ids, written, clock: fixture.clock, marks: fixture.marks }, NEVER);
  }

  test('has the sign-ins of today with what their references open to, and what failed by its reason', async () => {
    const { context } = fixture;
    await recordSignIn(context, HERE, account, ['password', 'totp']);
    await recordFailure(context, HERE, account, { factor: 'password', reason: 'password-wrong' });
    await recordFailure(context, HERE, account, { factor: 'totp', reason: 'mfa-code-used' });
    const answer = await get();
    assert.equal(answer.statusCode, 200, answer.body);
    const { today, days, pagination } = answer.json();
    const [signIn] = today.sign_ins;
    assert.deepEqual([signIn.at, signIn.factors], [fixture.clock.now(), ['password', 'totp']]);
    assert.equal(today.openings[signIn.source_address_ref].value, HERE.address);
    assert.equal(today.openings[signIn.user_agent_ref].value, HERE.userAgent);
    assert.deepEqual(
      today.failures.toSorted((a: { factor: string }, b: { factor: string }) => (a.factor < b.factor ? -1 : 1)),
      [
        { factor: 'password', reason: 'password-wrong', count: 1 },
        { factor: 'totp', reason: 'mfa-code-used', count: 1 },
      ],
    );
    assert.deepEqual([days, pagination], [[], { next_before: null, has_more: false }]);
  });

  test('counts reads that are refused to a token by their reason, also after it was revoked or has expired', async () => {
    const owner = await fixture.account('bob');
    const all = await fixture.token(owner);
    const repository = await fixture.repository(owner, 'engine');
    const other = await fixture.repository(owner, 'other');
    const lists = await fixture.token(owner, { grants: ['API_REPOS_READ'] });
    const selected = await fixture.token(owner, { scope: 'SELECTED_REPO', repositoryIds: [repository.id] });
    const expired = await fixture.token(owner);
    const revoked = await fixture.token(owner);
    const url = (name: string): string => `/v1/repos/bob/${name}`;
    const read = async (path: string, by: TestToken, status: number): Promise<void> => {
      assert.equal((await fixture.request('GET', path, by)).statusCode, status, path);
    };
    await read(`${url('engine')}/branches`, lists, 403);
    await read('/v1/account/events', selected, 403);
    await read(url(other.owned.name), selected, 404);
    await read(url('nothing'), all, 404);
    // What is no read, and what is no token's secret, does not count.
    assert.equal((await fixture.request('DELETE', url('engine'), lists)).statusCode, 403);
    await read(url('engine'), { id: all.id, secret: newTokenSecret() }, 401);
    const expires_at = new Date(Date.parse(fixture.clock.now()) + 1_000).toISOString();
    await fixture.request('PUT', `/v1/access-tokens/${expired.id}`, all, { body: { expires_at } });
    await fixture.request('DELETE', `/v1/access-tokens/${revoked.id}`, all);
    fixture.clock.advance(1_000);
    for (const one of [expired, revoked, revoked]) await read(url('engine'), one, 401);
    await fixture.context.transfer.flush();
    const { today } = (await get('', all)).json();
    const counts = new Map<string, number>(
      today.refused_reads.map((one: { token_id: string; reason: string; count: number }) => [
        `${one.token_id} ${one.reason}`,
        one.count,
      ]),
    );
    assert.deepEqual(
      counts,
      new Map([
        [`${revoked.id} token-revoked`, 2],
        [`${lists.id} grant-missing`, 1],
        [`${selected.id} scope-missing`, 1],
        [`${selected.id} repository-not-found`, 1],
        [`${all.id} repository-not-found`, 1],
        [`${expired.id} token-expired`, 1],
      ]),
    );
  });

  // The attack: a stranger fills the record of an account by asking for its repositories.
  test('counts a read of another account’s repository for the account of the token alone', async () => {
    const victim = await fixture.account('carol');
    await fixture.repository(victim, 'secret');
    const theirs = await fixture.token(victim);
    const mine = await fixture.token(await fixture.account('mallory'));
    assert.equal((await fixture.request('GET', '/v1/repos/carol/secret', mine)).statusCode, 404);
    await fixture.context.transfer.flush();
    assert.deepEqual((await get('', theirs)).json().today, NOTHING);
    const [refused] = (await get('', mine)).json().today.refused_reads;
    assert.deepEqual(refused, { token_id: mine.id, reason: 'repository-not-found', count: 1 });
  });

  test('has the days that the daily sums hold, newest first and in pages, after the day has none of it', async () => {
    const owner = await fixture.account('dave');
    const by = await fixture.token(owner);
    for (const factor of ['password', 'totp'] as const) {
      await recordSignIn(fixture.context, { ...HERE, address: factor }, owner, [factor]);
      await recordFailure(fixture.context, HERE, owner, { factor, reason: 'wrong' });
      await nextDay();
    }
    const { today, days, pagination } = (await get('', by)).json();
    assert.deepEqual([today, pagination.has_more], [NOTHING, false]);
    const factorsOf = (of: readonly { details: { failures: readonly { factor: string }[] } }[]): string[] =>
      of.flatMap(({ details }) => details.failures.map(({ factor }) => factor));
    assert.deepEqual(factorsOf(days), ['totp', 'password']);
    const [{ day, event_id, details }] = days;
    assert.deepEqual(details.sign_ins[0].factors, ['totp']);
    assert.equal(details.openings[details.sign_ins[0].source_address_ref].value, 'totp');
    const event = (await fixture.request('GET', `/v1/account/events/${event_id}`, by)).json();
    assert.deepEqual([event.entry.type, event.entry.data.day], ['UsageRecorded', day]);
    assert.equal(event.openings[details.sign_ins[0].source_address_ref].value, 'totp');
    const first = (await get('?limit=1', by)).json();
    assert.deepEqual([factorsOf(first.days), first.pagination.has_more], [['totp'], true]);
    const second = (await get(`?limit=1&before=${first.pagination.next_before}`, by)).json();
    assert.deepEqual([factorsOf(second.days), second.pagination.has_more], [['password'], false]);
  });

  test('refuses what is no page', async () => {
    for (const query of ['limit=0', `limit=${SIGN_IN_DAYS_LIMIT_MAX + 1}`, 'before=-1', 'before=x', 'day=today']) {
      assert.equal((await get(`?${query}`)).statusCode, 422, query);
    }
    assert.equal((await get(`?limit=${SIGN_IN_DAYS_LIMIT_MAX}`)).statusCode, 200);
  });

  // The attack: a token for one repository asks from where its owner signs in.
  test('is refused to a token without ALL and ALL_REPO', async () => {
    const reader = await fixture.token(account, { grants: ['API_REPOS_READ'] });
    assert.equal((await get('', reader)).statusCode, 403);
    assert.equal((await get('', null)).statusCode, 401);
  });
});
