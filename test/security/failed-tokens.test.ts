/** Somebody who tries access tokens, from one address or from many. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import {
  createFailedTokens,
  FAILED_TOKENS_PER_MINUTE_MAX,
  FAILED_TOKENS_PER_MINUTE_NODE_MAX,
  FAILED_TOKENS_PER_MINUTE_WIDE_MAX,
  type FailedTokens,
  TOKENS_LOOKED_UP_MAX,
} from '../../apps/front-door/failed-tokens.ts';
import { LOG_START } from '../../core/kernel/envelope.ts';
import type { AccessTokenId } from '../../core/kernel/ids.ts';
import type { KnownTokens } from '../../core/ports/access-token-lists.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import { type ApiFixture, createApiFixture } from '../support/api-fixture.ts';
import { startGit } from '../support/git-fixture.ts';
import { createTestClock } from '../support/test-clock.ts';

const ATTACKER = '203.0.113.7';

describe('An attacker who tries access tokens on the API', () => {
  let fixture: ApiFixture;
  let reads = 0;
  beforeEach(async () => {
    fixture = await createApiFixture({
      wrapEvents: (events) => ({
        ...events,
        readStream: (...args) => {
          reads += 1;
          return events.readStream(...args);
        },
      }),
      // Every token that is looked up costs a read of the log.
      entitiesSizeBytesMax: 0,
    });
    reads = 0;
  });
  afterEach(() => fixture.close());

  const use = (secret: string, remoteAddress = ATTACKER) =>
    fixture.app.inject({ url: '/v1/account/usage', headers: { authorization: `Bearer ${secret}` }, remoteAddress });
  const tryOut = async (times: number): Promise<readonly number[]> => {
    const statuses: number[] = [];
    for (let n = 0; n < times; n += 1) statuses.push((await use(newTokenSecret())).statusCode);
    return statuses;
  };

  test('is told after sixty in a minute to wait, and costs no read of the log from then on', async () => {
    const first = await tryOut(FAILED_TOKENS_PER_MINUTE_MAX);
    assert.deepEqual(new Set(first), new Set([401]));
    reads = 0;
    const refused = await use(newTokenSecret());
    assert.deepEqual([refused.statusCode, refused.headers['retry-after']], [429, '60']);
    assert.deepEqual(new Set(await tryOut(20)), new Set([429]));
    assert.equal(reads, 0);
    fixture.clock.advance(60_000);
    assert.deepEqual(await tryOut(1), [401]);
  });

  test('costs nothing for a secret with a wrong checksum, which is not even counted', async () => {
    for (let n = 0; n < 2 * FAILED_TOKENS_PER_MINUTE_MAX; n += 1) {
      assert.equal((await use(`strata_${String(n).padStart(40, '0')}000000`)).statusCode, 401);
    }
    assert.equal(reads, 0);
    assert.deepEqual(await tryOut(1), [401]);
  });

  test('does not hold up a valid token from the same address, first used or used before, nor one of another address', async () => {
    const account = await fixture.account('ada');
    const [used, unused] = [await fixture.token(account), await fixture.token(account)];
    assert.equal((await use(used.secret)).statusCode, 200);
    await tryOut(2 * FAILED_TOKENS_PER_MINUTE_MAX);
    for (const { secret } of [used, unused]) assert.equal((await use(secret)).statusCode, 200);
    const made = await fixture.token(account);
    assert.equal((await use(made.secret)).statusCode, 200);
    assert.equal((await use(newTokenSecret(), '192.0.2.1')).statusCode, 401);
  });

  test('gains nothing by a token that was revoked', async () => {
    const account = await fixture.account('ada');
    const [valid, revoked] = [await fixture.token(account), await fixture.token(account)];
    assert.equal((await use(revoked.secret)).statusCode, 200);
    await fixture.request('DELETE', `/v1/access-tokens/${revoked.id}`, valid);
    await tryOut(FAILED_TOKENS_PER_MINUTE_MAX);
    assert.equal((await use(revoked.secret)).statusCode, 401);
  });
});

test('An attacker who tries access tokens on Git is told to wait, while a valid token clones', async () => {
  const fixture = await createApiFixture();
  const git = await startGit(fixture);
  try {
    const account = await fixture.account('ada');
    await fixture.repository(account, 'engine');
    const valid = await fixture.token(account);
    const use = (secret: string) =>
      git.request('GET', '/r/ada/engine.git/info/refs?service=git-upload-pack', { id: valid.id, secret });
    for (let n = 0; n < FAILED_TOKENS_PER_MINUTE_MAX; n += 1) assert.equal((await use(newTokenSecret())).status, 401);
    const refused = await use(newTokenSecret());
    assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60']);
    assert.equal((await use(valid.secret)).status, 200);
  } finally {
    await git.close();
    await fixture.close();
  }
});

describe('The throttle of failed tokens', () => {
  const newId = () => uuids.next<AccessTokenId>();

  function started(tokensAmong: KnownTokens['tokensAmong'] = async () => new Set()) {
    const lookups: (readonly AccessTokenId[])[] = [];
    const clock = createTestClock();
    const failedTokens = createFailedTokens({
      clock,
      tokens: {
        tokensAmong: (ids, position) => {
          lookups.push(ids);
          return tokensAmong(ids, position);
        },
      },
    });
    const judge = async (address: string, id = newId(), named: AccessTokenId | null = null) =>
      failedTokens.judge({ derived: id, named }, address, LOG_START);
    return { clock, failedTokens, lookups, judge };
  }

  function fail(failedTokens: FailedTokens, address: string, times: number): void {
    for (let n = 0; n < times; n += 1) failedTokens.failed(address);
  }

  test('counts a /64 of IPv6 as one, and three hundred failures in a /48', async () => {
    const { failedTokens, judge } = started();
    fail(failedTokens, '2001:db8:7:1::1', FAILED_TOKENS_PER_MINUTE_MAX - 1);
    assert.deepEqual(await judge('2001:db8:7:1::2'), { worth: true });
    fail(failedTokens, '2001:db8:7:1::3', 1);
    assert.deepEqual(await judge('2001:db8:7:1::2'), { worth: false, waitSeconds: 60 });
    assert.deepEqual(await judge('2001:db8:7:2::1'), { worth: true });
    for (let n = FAILED_TOKENS_PER_MINUTE_MAX; n < FAILED_TOKENS_PER_MINUTE_WIDE_MAX - 1; n += 1) {
      failedTokens.failed(`2001:db8:7:${n.toString(16)}::1`);
    }
    assert.deepEqual(await judge('2001:db8:7:ffff::1'), { worth: true });
    failedTokens.failed('2001:db8:7:aaaa::1');
    assert.deepEqual(await judge('2001:db8:7:ffff::1'), { worth: false, waitSeconds: 60 });
    assert.deepEqual(await judge('2001:db8:8::1'), { worth: true });
  });

  test('lets failures from ever new addresses cost no reads of the log either, but makes none of them wait', async () => {
    const { clock, failedTokens, judge } = started();
    for (let n = 0; n < FAILED_TOKENS_PER_MINUTE_NODE_MAX - 1; n += 1) {
      failedTokens.failed(`198.18.${Math.floor(n / 256)}.${n % 256}`);
    }
    assert.deepEqual(await judge('192.0.2.1'), { worth: true });
    failedTokens.failed('192.0.2.2');
    assert.deepEqual(await judge('192.0.2.1'), { worth: false, waitSeconds: null });
    clock.advance(60_000);
    assert.deepEqual(await judge('192.0.2.1'), { worth: true });
  });

  test('looks up what arrives in between with one query, of a thousand at most', async () => {
    const answers: (() => void)[] = [];
    const valid = newId();
    const { failedTokens, judge, lookups } = started(
      (ids) => new Promise((resolve) => answers.push(() => resolve(new Set(ids.filter((id) => id === valid))))),
    );
    fail(failedTokens, ATTACKER, FAILED_TOKENS_PER_MINUTE_MAX);
    const judged = [judge(ATTACKER)];
    for (let n = 0; n < TOKENS_LOOKED_UP_MAX; n += 1) judged.push(judge(ATTACKER, n === 500 ? valid : newId()));
    judged.push(judge(ATTACKER));
    for (let n = 0; n < 3; n += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      answers.shift()?.();
    }
    const worth = (await Promise.all(judged)).map((one) => one.worth);
    assert.deepEqual([worth.filter(Boolean).length, worth[501]], [1, true]);
    assert.deepEqual(
      lookups.map((ids) => ids.length),
      [1, TOKENS_LOOKED_UP_MAX, 1],
    );
  });

  // The attack: secrets that name the id of a token that was valid here, to be taken for it without a look-up.
  test('looks up a secret that names a token under both its ids, however often that token was valid', async () => {
    const named = newId();
    const { failedTokens, judge, lookups } = started(async (ids) => new Set(ids.filter((id) => id === named)));
    failedTokens.passed({ derived: newId(), named });
    fail(failedTokens, ATTACKER, FAILED_TOKENS_PER_MINUTE_MAX);
    const derived = newId();
    assert.deepEqual(await judge(ATTACKER, derived, named), { worth: true });
    assert.deepEqual(new Set(lookups.flat()), new Set([derived, named]));
    assert.deepEqual(await judge(ATTACKER, derived, newId()), { worth: false, waitSeconds: 60 });
  });

  test('asks nothing about a token that was valid once, and goes on after a failure of the read model', async () => {
    let isDown = true;
    const { failedTokens, judge, lookups } = started(async () => {
      if (isDown) throw new ReadModelError('read-model-unavailable', 'down');
      return new Set();
    });
    fail(failedTokens, ATTACKER, FAILED_TOKENS_PER_MINUTE_MAX);
    const known = newId();
    failedTokens.passed({ derived: known, named: null });
    assert.deepEqual(await judge(ATTACKER, known), { worth: true });
    assert.equal(lookups.length, 0);
    await assert.rejects(judge(ATTACKER), { code: 'read-model-unavailable' });
    isDown = false;
    assert.deepEqual(await judge(ATTACKER), { worth: false, waitSeconds: 60 });
  });
});
