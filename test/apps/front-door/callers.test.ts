/** What one account may ask of the service, so that it cannot take it from the others. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import {
  ACCOUNT_EVENTS_KEPT_FOR_PERSON,
  ACCOUNT_EVENTS_PER_HOUR_MAX,
  ACCOUNT_POINTS_PER_MINUTE_MAX,
  ACCOUNT_REF_CHANGES_PER_HOUR_MAX,
  ACCOUNT_REQUESTS_AT_ONCE_MAX,
  ACCOUNT_REQUESTS_AT_ONCE_TIGHT_MAX,
  type Callers,
  createCallers,
  PERSON_POINTS_PER_MINUTE_MAX,
  RECORDED_BODY_BYTES,
  REF_CHANGE_NAME_BYTES,
  REQUESTS_AT_ONCE_ROOMY_MAX,
  refChangesOf,
  TOKEN_POINTS_PER_MINUTE_MAX,
} from '../../../apps/front-door/callers.ts';
import { createRateExchange, RATE_EXCHANGE_PART_MIN } from '../../../apps/front-door/rate-exchange.ts';
import { accessTokens } from '../../../core/access-token/evolve.ts';
import { refName } from '../../../core/git/ref-name.ts';
import { streamName } from '../../../core/kernel/envelope.ts';
import type { AccessTokenId, AccountId } from '../../../core/kernel/ids.ts';
import { REQUEST_POINTS } from '../../../core/kernel/limits.ts';
import type { Principal } from '../../../core/use-cases/callers/principal.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { startGit } from '../../support/git-fixture.ts';
import { createMemoryRateSums } from '../../support/memory/rate-sums.ts';
import { createTestClock } from '../../support/test-clock.ts';

function account(): AccountId {
  return uuids.next<AccountId>();
}

function tokenOf(of: AccountId): Principal {
  const tokenId = uuids.next<AccessTokenId>();
  const settings = { name: 'ci', scope: 'ALL_REPO', grants: ['ALL'], repositoryIds: [], expiresAt: null } as const;
  const createdAt = createTestClock().now();
  const token = { status: 'active', account: of, ...settings, createdAt, tokenPrefix: '', secretHash: '' } as const;
  return { kind: 'access-token', account: of, tokenId, token, guards: [] };
}

function personOf(of: AccountId): Principal {
  return {
    kind: 'session',
    account: of,
    username: 'ada',
    epoch: 0,
    guard: { stream: streamName('account', of), revision: 0 },
  };
}

/** Spends the points in one go; returns what refused it, or null. */
function spend(callers: Callers, principal: Principal, points: number): string | null {
  const entered = callers.enter(principal, points);
  if ('exceeded' in entered) return `${entered.exceeded} for ${entered.waitSeconds} s`;
  entered.leave();
  return null;
}

describe('The points of a minute', () => {
  const started = (factor = 1) => {
    const clock = createTestClock();
    clock.advance(15_000);
    return { clock, callers: createCallers({ clock, factor }) };
  };

  test('are 2,400,000 of a token and 3,000,000 of its account, and come back at the full minute', () => {
    const { clock, callers } = started();
    const ada = account();
    const [first, second] = [tokenOf(ada), tokenOf(ada)];
    assert.equal(spend(callers, first, TOKEN_POINTS_PER_MINUTE_MAX), null);
    assert.equal(spend(callers, first, 1), 'token-points for 45 s');
    assert.equal(spend(callers, second, ACCOUNT_POINTS_PER_MINUTE_MAX - TOKEN_POINTS_PER_MINUTE_MAX), null);
    assert.equal(spend(callers, second, 1), 'account-points for 45 s');
    assert.equal(spend(callers, tokenOf(account()), 1), null, 'another account has its own');
    clock.advance(44_999);
    assert.equal(spend(callers, second, 1), 'account-points for 1 s');
    clock.advance(1);
    assert.equal(spend(callers, first, TOKEN_POINTS_PER_MINUTE_MAX), null);
  });

  test('are not used up by a refusal, and what is left is told', () => {
    const { callers } = started();
    const token = tokenOf(account());
    assert.equal(spend(callers, token, TOKEN_POINTS_PER_MINUTE_MAX - 10), null);
    assert.equal(spend(callers, token, 11), 'token-points for 45 s');
    const entered = callers.enter(token, 4);
    assert.ok('rate' in entered);
    assert.deepEqual(entered.rate, {
      limit: TOKEN_POINTS_PER_MINUTE_MAX,
      remaining: 6,
      resetSeconds: Date.parse('2026-11-21T10:01:00Z') / 1_000,
    });
  });

  test('of tokens leave their person 120,000 on the website', () => {
    const { callers } = started();
    const ada = account();
    spend(callers, tokenOf(ada), TOKEN_POINTS_PER_MINUTE_MAX);
    spend(callers, tokenOf(ada), ACCOUNT_POINTS_PER_MINUTE_MAX - TOKEN_POINTS_PER_MINUTE_MAX);
    assert.equal(spend(callers, personOf(ada), PERSON_POINTS_PER_MINUTE_MAX), null);
    assert.equal(spend(callers, personOf(ada), 1), 'person-points for 45 s');
  });

  test('are more by the factor that the operator sets', () => {
    const { callers } = started(3);
    const token = tokenOf(account());
    assert.equal(spend(callers, token, 3 * TOKEN_POINTS_PER_MINUTE_MAX), null);
    assert.equal(spend(callers, token, 1), 'token-points for 45 s');
  });
});

describe('Concurrent requests', () => {
  const enterAll = (callers: Callers, principal: Principal, times: number) => {
    const leaves: (() => void)[] = [];
    for (let n = 0; n < times; n += 1) {
      const entered = callers.enter(principal, 1);
      if ('exceeded' in entered) return { leaves, refused: entered };
      leaves.push(entered.leave);
    }
    return { leaves, refused: null };
  };

  test('are 512 of an account, and one that leaves makes room for one', () => {
    const callers = createCallers({ clock: createTestClock(), factor: 1 });
    const ada = account();
    const { leaves, refused } = enterAll(callers, tokenOf(ada), ACCOUNT_REQUESTS_AT_ONCE_MAX + 1);
    assert.equal(leaves.length, ACCOUNT_REQUESTS_AT_ONCE_MAX);
    assert.equal(refused?.exceeded, 'at-once');
    // Twice: a request leaves once.
    leaves[0]?.();
    leaves[0]?.();
    assert.equal(enterAll(callers, tokenOf(ada), 2).leaves.length, 1);
    assert.equal(spend(callers, personOf(ada), 1), null, 'its person has a place');
  });

  test('of other accounts still find room when three accounts have taken all they may', () => {
    const callers = createCallers({ clock: createTestClock(), factor: 1 });
    const greedy = REQUESTS_AT_ONCE_ROOMY_MAX / ACCOUNT_REQUESTS_AT_ONCE_MAX;
    for (let n = 0; n < greedy; n += 1) enterAll(callers, tokenOf(account()), ACCOUNT_REQUESTS_AT_ONCE_MAX);
    const other = tokenOf(account());
    assert.equal(
      enterAll(callers, other, ACCOUNT_REQUESTS_AT_ONCE_MAX).leaves.length,
      ACCOUNT_REQUESTS_AT_ONCE_TIGHT_MAX,
    );
  });
});

describe('What an account records within an hour', () => {
  test('is 50,000 changes, the last thousand of them for its person', () => {
    const clock = createTestClock();
    const callers = createCallers({ clock, factor: 1 });
    const ada = account();
    const token = tokenOf(ada);
    const forTokens = ACCOUNT_EVENTS_PER_HOUR_MAX - ACCOUNT_EVENTS_KEPT_FOR_PERSON;
    for (let n = 0; n < forTokens; n += 1) assert.equal(callers.record(token, 0), null);
    assert.equal(callers.record(token, 0)?.exceeded, 'events');
    for (let n = 0; n < ACCOUNT_EVENTS_KEPT_FOR_PERSON; n += 1) assert.equal(callers.record(personOf(ada), 0), null);
    assert.equal(callers.record(personOf(ada), 0)?.waitSeconds, 3_600);
    clock.advance(3_600_000);
    assert.equal(callers.record(token, 0), null);
  });

  test('is 250,000 refs created, moved or deleted', () => {
    const callers = createCallers({ clock: createTestClock(), factor: 1 });
    const token = tokenOf(account());
    assert.equal(callers.record(token, ACCOUNT_REF_CHANGES_PER_HOUR_MAX - 1), null);
    assert.equal(callers.record(token, 2)?.exceeded, 'ref-changes');
    assert.equal(callers.record(token, 1), null);
    assert.equal(callers.record(token, 1)?.exceeded, 'ref-changes');
  });

  test('is no further change for the refs of a request that was counted when it began', () => {
    const callers = createCallers({ clock: createTestClock(), factor: 1 });
    const person = personOf(account());
    assert.equal(callers.recordBody(person, (ACCOUNT_EVENTS_PER_HOUR_MAX - 1) * RECORDED_BODY_BYTES), null);
    assert.equal(callers.record(person, 0), null);
    assert.equal(callers.recordRefs(person, ACCOUNT_REF_CHANGES_PER_HOUR_MAX), null);
    assert.equal(callers.recordRefs(person, 1)?.exceeded, 'ref-changes');
    assert.equal(callers.record(person, 0)?.exceeded, 'events');
  });

  test('is a change more for each 256 bytes of the name of a ref, which the log keeps', () => {
    // Components of 250 bytes, as long as they may be.
    const named = (components: number) =>
      refChangesOf(refName(`refs/heads${`/${'é'.repeat(125)}`.repeat(components)}`));
    const ofBytes = (bytes: number) => refChangesOf(refName('refs/heads/'.padEnd(bytes, 'x')));
    assert.deepEqual([ofBytes(REF_CHANGE_NAME_BYTES - 1), ofBytes(REF_CHANGE_NAME_BYTES)], [1, 2]);
    assert.deepEqual([named(1), named(4), named(16)], [2, 4, 16]);
  });

  test('is a change more for each 4 KiB of a body, so that long events do not fill the log', () => {
    const callers = createCallers({ clock: createTestClock(), factor: 1 });
    const token = tokenOf(account());
    const forTokens = ACCOUNT_EVENTS_PER_HOUR_MAX - ACCOUNT_EVENTS_KEPT_FOR_PERSON;
    assert.equal(callers.recordBody(token, RECORDED_BODY_BYTES - 1), null);
    assert.equal(callers.recordBody(token, forTokens * RECORDED_BODY_BYTES), null);
    assert.equal(callers.recordBody(token, RECORDED_BODY_BYTES)?.exceeded, 'events');
    assert.equal(callers.recordBody(token, RECORDED_BODY_BYTES - 1), null);
    assert.equal(callers.record(token, 0)?.exceeded, 'events');
  });
});

test('An account that spreads its requests over three nodes gets its rate once, after an exchange', async () => {
  const clock = createTestClock();
  const sums = createMemoryRateSums();
  const nodes = ['one', 'two', 'three'].map((node) => {
    const callers = createCallers({ clock, factor: 1 });
    return { callers, exchange: createRateExchange({ node, counts: callers.counts, sums }) };
  });
  const [ada, grace] = [account(), account()];
  const token = tokenOf(ada);
  const third = ACCOUNT_POINTS_PER_MINUTE_MAX / 3;
  const other = tokenOf(ada);
  for (const { callers } of nodes) {
    assert.equal(spend(callers, token, third / 2), null);
    assert.equal(spend(callers, other, third / 2), null);
    // Too little to be worth telling.
    assert.equal(spend(callers, tokenOf(grace), ACCOUNT_POINTS_PER_MINUTE_MAX * RATE_EXCHANGE_PART_MIN - 1), null);
  }
  for (let round = 0; round < 2; round += 1) for (const { exchange } of nodes) await exchange();
  for (const { callers } of nodes) assert.equal(spend(callers, token, 1), 'account-points for 60 s');
  assert.deepEqual(
    sums.told().filter(({ key }) => key === grace),
    [],
  );
  clock.advance(60_000);
  for (const { callers } of nodes) assert.equal(spend(callers, token, third), null);
});

describe('A caller of the API', () => {
  let fixture: ApiFixture;
  let token: TestToken;
  beforeEach(async () => {
    fixture = await createApiFixture();
    token = await fixture.token(await fixture.account('ada'));
  });
  afterEach(() => fixture.close());

  /** Spends what is left of the token but this many points. */
  async function leave(points: number): Promise<void> {
    const { headers } = await fixture.request('GET', '/v1/account/usage', token);
    const account = (await fixture.context.entities.get(accessTokens, token.id)).state;
    assert.ok('account' in account);
    const principal = { ...tokenOf(account.account), tokenId: token.id } as Principal;
    const rest = Number(headers['x-ratelimit-remaining']) - points;
    assert.equal(fixture.context.callers.charge(principal, rest), null);
  }

  test('reads in every answer what is left, and is refused with the time to wait when nothing is', async () => {
    const first = await fixture.request('GET', '/v1/account/usage', token);
    assert.equal(Number(first.headers['x-ratelimit-limit']), TOKEN_POINTS_PER_MINUTE_MAX);
    assert.equal(Number(first.headers['x-ratelimit-remaining']), TOKEN_POINTS_PER_MINUTE_MAX - REQUEST_POINTS.read);
    assert.equal(Number(first.headers['x-ratelimit-reset']), Date.parse('2026-11-21T10:01:00Z') / 1_000);
    const missing = await fixture.request('GET', '/v1/repos/ada/none', token);
    assert.equal(Number(missing.headers['x-ratelimit-limit']), TOKEN_POINTS_PER_MINUTE_MAX);
    await leave(REQUEST_POINTS.read);
    assert.equal((await fixture.request('GET', '/v1/account/usage', token)).statusCode, 200);
    const refused = await fixture.request('GET', '/v1/account/usage', token);
    assert.equal(refused.statusCode, 429);
    assert.equal(refused.headers['retry-after'], '60');
    assert.equal(refused.headers['x-ratelimit-remaining'], '0');
    assert.match(refused.json().detail, /used its points of this minute: try again in 60 seconds/);
    fixture.clock.advance(60_000);
    assert.equal((await fixture.request('GET', '/v1/account/usage', token)).statusCode, 200);
  });

  test('is not held up by failed tokens of its address, nor holds them up', async () => {
    const bad = { ...token, secret: `${token.secret.slice(0, -1)}_` };
    await leave(0);
    assert.equal((await fixture.request('GET', '/v1/account/usage', bad)).statusCode, 401);
    assert.equal((await fixture.request('GET', '/v1/account/usage', token)).statusCode, 429);
  });

  test('is refused a change by name when those of the hour are made, and reads on', async () => {
    const state = (await fixture.context.entities.get(accessTokens, token.id)).state;
    assert.ok('account' in state);
    for (let n = 0; n < ACCOUNT_EVENTS_PER_HOUR_MAX - ACCOUNT_EVENTS_KEPT_FOR_PERSON; n += 1) {
      fixture.context.callers.record(tokenOf(state.account), 0);
    }
    const refused = await fixture.request('POST', '/v1/repositories', token, { body: { name: 'hello' } });
    assert.equal(refused.statusCode, 429);
    assert.equal(refused.headers['retry-after'], '3600');
    assert.match(refused.json().detail, /changes of this hour: try again in 60 minutes/);
    assert.equal((await fixture.request('GET', '/v1/repositories', token)).statusCode, 200);
  });

  test('gets from Git a text with 429', async () => {
    const git = await startGit(fixture);
    try {
      const target = '/r/ada/engine.git/info/refs?service=git-upload-pack';
      assert.equal((await git.request('GET', target, token)).status, 404);
      await leave(0);
      const refused = await git.request('GET', target, token);
      assert.equal(refused.status, 429);
      assert.ok(Number(refused.headers.get('retry-after')) >= 1);
      assert.match(refused.text, /^This access token has used its points of this minute: try again in/);
    } finally {
      await git.close();
    }
  });

  test('holds no place once its requests are answered', async () => {
    for (let n = 0; n < 2 * ACCOUNT_REQUESTS_AT_ONCE_MAX; n += 1) {
      assert.equal((await fixture.request('GET', '/v1/access-tokens', token)).statusCode, 200);
    }
  });
});
