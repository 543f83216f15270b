/** The past of an account and of its repositories over REST. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { accountStateText } from '../../../core/audit/account-state.ts';
import { entryOf } from '../../../core/audit/entry.ts';
import { replayExport } from '../../../core/audit/replay.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import { type AccountId, type ObjectId, plusMs, type Timestamp } from '../../../core/kernel/ids.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { isEntryOf } from '../../../core/runtime/log-time.ts';
import { deleteRepository, type FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { CAUSE } from '../../support/node.ts';

describe('The past of an account', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let start: Timestamp;
  const ids: ObjectId[] = [];

  /** Minutes after the start: 0 account and token, 1 repository, 2 and 3 pushes, 4 a deleted one. */
  beforeAll(async () => {
    fixture = await createApiFixture();
    start = fixture.clock.now();
    account = await fixture.account('ada');
    token = await fixture.token(account);
    fixture.clock.advance(60_000);
    repository = await fixture.repository(account, 'project', 'trunk');
    const tree = fixture.objects.tree({});
    for (let seconds = 1; seconds <= 2; seconds += 1) ids.push(fixture.objects.commit({ tree, seconds }));
    const [first = null, second = null] = ids;
    fixture.clock.advance(60_000);
    await fixture.push(repository, { 'refs/heads/trunk': first, 'refs/tags/v1': first });
    fixture.clock.advance(60_000);
    await fixture.push(repository, { 'refs/heads/trunk': second, 'refs/tags/v1': null });
    fixture.clock.advance(60_000);
    const gone = await fixture.repository(account, 'gone');
    fixture.clock.advance(60_000);
    await deleteRepository(fixture.context, { account, cause: CAUSE }, gone.id);
  });
  afterAll(() => fixture.close());

  const minute = (minutes: number): string => plusMs(start, minutes * 60_000);
  const get = (path: string, at: string | null, by: TestToken | null = token) =>
    fixture.request('GET', `/v1/${path}${at === null ? '' : `?at=${encodeURIComponent(at)}`}`, by);
  const stateAt = async (at: string | null) => {
    const answer = await get('account/state', at);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer;
  };
  const refsAt = async (at: string | null) => {
    const answer = await get('repos/ada/project/refs', at);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json();
  };

  test('shows the account as it was, moment by moment, and by default as it is', async () => {
    const names = async (at: string | null) =>
      (await stateAt(at)).json().repositories.map((one: { name: string }) => one.name);
    assert.deepEqual(await names(minute(0)), []);
    assert.deepEqual(await names(minute(1)), ['project']);
    assert.deepEqual(await names(minute(4)), ['project', 'gone']);
    assert.deepEqual(await names(null), ['project']);
    const now = (await stateAt(null)).json();
    const [project] = now.repositories;
    assert.deepEqual([project.id, project.default_branch], [repository.id, 'trunk']);
    assert.deepEqual(project.refs, [{ name: 'refs/heads/trunk', peeled: null, target: ids[1] }]);
    assert.deepEqual(
      now.access_tokens.map(({ id }: { id: string }) => id),
      [token.id],
    );
    assert.equal(now.usage.repos.used, 1);
    assert.deepEqual(now, (await stateAt(fixture.clock.now())).json(), 'the moment is included');
  });

  test('shows no personal data, and no secret', async () => {
    const { body } = await stateAt(null);
    for (const hidden of ['ada@example.org', token.secret, digest.sha256(token.secret)]) {
      assert.ok(!body.includes(hidden), hidden);
    }
    assert.match(JSON.parse(body).account.email_ref, /^[0-9a-f]{64}$/);
  });

  test('has the digest of the same entries replayed from an export', async () => {
    const log = await fixture.context.events.readAll(LOG_START, 1_000);
    const entries = log.filter((event) => isEntryOf(account, event));
    const lines = entries.map((entry, sequence) => canonicalJson({ entry: entryOf(entry, sequence), leaf: '' }));
    for (const at of [minute(0), minute(2), minute(3)]) {
      const fold = await replayExport(lines, at as Timestamp, { digest, nextTurn });
      let text = '';
      const refsOf = async () => [];
      for await (const piece of accountStateText(fold, { digest, nextTurn, refsOf })) text += piece;
      assert.equal((await stateAt(at)).body, text);
    }
  });

  test('shows the refs of a repository as of a moment, and by default as they are', async () => {
    const named = (name: string, target: ObjectId | undefined) => ({ name, target, peeled: null });
    assert.deepEqual(await refsAt(minute(1)), { default_branch: 'trunk', refs: [] });
    assert.deepEqual(await refsAt(minute(2.5)), {
      default_branch: 'trunk',
      refs: [named('refs/heads/trunk', ids[0]), named('refs/tags/v1', ids[0])],
    });
    const now = { default_branch: 'trunk', refs: [named('refs/heads/trunk', ids[1])] };
    assert.deepEqual(await refsAt(minute(3)), now);
    assert.deepEqual(await refsAt(null), now);
  });

  test('takes every offset, and refuses what is no moment, lies in the future or before the account', async () => {
    const offset = minute(2).replace('Z', '+00:00');
    assert.deepEqual((await stateAt(offset)).json(), (await stateAt(minute(2))).json());
    const future = plusMs(fixture.clock.now(), 1);
    for (const path of ['account/state', 'repos/ada/project/refs']) {
      for (const at of ['', 'yesterday', '2026-11-21', '0000-01-01T00:00:00Z', '0001-01-01T00:00:00+01:00', future]) {
        assert.equal((await get(path, at)).statusCode, 422, `${path} at ${at}`);
      }
      assert.equal((await get(path, plusMs(start, -1))).statusCode, 404, path);
      assert.equal((await get(path, null, null)).statusCode, 401, path);
    }
    assert.equal((await get('repos/ada/project/refs', minute(0.5))).statusCode, 404, 'before the repository');
  });

  test('answers HEAD without a body, and the next request immediately', async () => {
    for (const path of ['/v1/account/state', '/v1/repos/ada/project/refs']) {
      for (let times = 0; times < 6; times += 1) {
        const answer = await fixture.request('HEAD', path, token);
        assert.deepEqual([answer.statusCode, answer.body], [200, '']);
      }
    }
  });
});
