/** Access tokens over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { LOC_DEPTH_MAX } from '../../../apps/api/http/json-body.ts';
import { TOKEN_REPOSITORIES_MAX } from '../../../apps/api/schemas/access-tokens.ts';
import { IDS_SHOWN_MAX } from '../../../apps/front-door/texts/refusals.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { ACCESS_TOKENS_MAX } from '../../../core/kernel/limits.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('access tokens', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let admin: TestToken;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    admin = await fixture.token(owner);
  });
  afterAll(() => fixture.close());

  const create = (body: object) => fixture.request('POST', '/v1/access-tokens', admin, { body });
  const put = (id: string, body: object) => fixture.request('PUT', `/v1/access-tokens/${id}`, admin, { body });

  test('show their secret only on creation, and it works', async () => {
    const created = await create({ name: 'ci', scope: 'ALL_REPO', grants: ['API_REPOS_READ'] });
    assert.equal(created.statusCode, 201);
    assert.equal(created.headers['cache-control'], 'no-store');
    const { token, ...rest } = created.json();
    assert.match(token, /^strata_[0-9A-Za-z]{46}$/);
    assert.deepEqual(rest, {
      id: rest.id,
      name: 'ci',
      scope: 'ALL_REPO',
      grants: ['API_REPOS_READ'],
      repository_ids: [],
      expires_at: null,
      created_at: fixture.clock.now(),
      last_used_at: null,
      token_prefix: token.slice(0, 11),
    });
    const asNew = await fixture.request('GET', '/v1/repositories', { id: rest.id, secret: token });
    assert.equal(asNew.statusCode, 200);
    const read = await fixture.request('GET', `/v1/access-tokens/${rest.id}`, admin);
    assert.deepEqual(read.json(), { ...rest, last_used_at: '2026-11-21T10:00:00.000Z' });
    const list = await fixture.request('GET', '/v1/access-tokens', admin);
    assert.deepEqual(list.json().access_tokens[0], read.json());
    assert.ok(!list.body.includes(token) && !read.body.includes(token));
  });

  test('are listed in pages if the request asks for one, else all of them', async () => {
    const all = (await fixture.request('GET', '/v1/access-tokens', admin)).json();
    assert.deepEqual(Object.keys(all), ['access_tokens']);
    const total = all.access_tokens.length;
    assert.ok(total >= 2);
    const page = async (query: string) => (await fixture.request('GET', `/v1/access-tokens?${query}`, admin)).json();
    assert.deepEqual(await page('page=1&limit=1'), {
      access_tokens: [all.access_tokens[1]],
      pagination: { page: 1, limit: 1, total, has_more: total > 2 },
    });
    assert.deepEqual((await page('page=0')).pagination, { page: 0, limit: 50, total, has_more: false });
    assert.deepEqual((await page('limit=1')).access_tokens, [all.access_tokens[0]]);
    assert.deepEqual((await page('page=99')).access_tokens, []);
    for (const query of ['page=-1', 'page=x', 'limit=0', 'limit=101']) {
      assert.equal((await fixture.request('GET', `/v1/access-tokens?${query}`, admin)).statusCode, 422, query);
    }
  });

  test('report every missing field together', async () => {
    const answer = await create({});
    assert.equal(answer.statusCode, 422);
    assert.deepEqual(
      answer.json().detail,
      ['name', 'scope', 'grants'].map((field) => ({ loc: ['body', field], msg: 'Field required', type: 'missing' })),
    );
  });

  test('refuse an invalid field by name', async () => {
    const good = { name: 'x', scope: 'ALL_REPO', grants: ['ALL'] };
    const unknown = '11111111-1111-4111-8111-111111111111';
    const cases: readonly (readonly [object, (string | number)[]])[] = [
      [{ name: '' }, ['name']],
      [{ name: 'n'.repeat(101) }, ['name']],
      [{ name: 5 }, ['name']],
      [{ scope: 'SOME' }, ['scope']],
      [{ grants: [] }, ['grants']],
      [{ grants: ['ALL', 'NONE'] }, ['grants', 1]],
      [{ scope: 'SELECTED_REPO' }, ['repository_ids']],
      [{ repository_ids: [unknown] }, ['repository_ids']],
      [{ scope: 'SELECTED_REPO', repository_ids: [unknown] }, ['repository_ids']],
      [{ scope: 'SELECTED_REPO', repository_ids: ['x'] }, ['repository_ids', 0]],
      [{ expires_at: fixture.clock.now() }, ['expires_at']],
      [{ expires_at: 'tomorrow' }, ['expires_at']],
      [{ expires_at: '9999-12-31T23:59:59-23:59' }, ['expires_at']],
      [{ expires_at: 17 }, ['expires_at']],
    ];
    for (const [wrong, field] of cases) {
      const answer = await create({ ...good, ...wrong });
      assert.equal(answer.statusCode, 422, JSON.stringify(wrong));
      assert.deepEqual(answer.json().detail[0].loc, ['body', ...field], JSON.stringify(wrong));
    }
    assert.equal((await create({ ...good, name: '😀'.repeat(100) })).statusCode, 201);
  });

  test('name unknown repositories up to the limit', async () => {
    for (const unknown of [IDS_SHOWN_MAX, IDS_SHOWN_MAX + 1]) {
      const repository_ids = Array.from({ length: unknown }, () => uuids.next());
      const answer = await create({ name: 'x', scope: 'SELECTED_REPO', grants: ['ALL'], repository_ids });
      const shown = repository_ids.slice(0, IDS_SHOWN_MAX).join(', ');
      assert.equal(answer.json().detail[0].msg, `Unknown repository ids: ${shown}`, `${unknown}`);
    }
  });

  test('refuse a wrong text with its place, up to the limit of its steps', async () => {
    for (const steps of [LOC_DEPTH_MAX, LOC_DEPTH_MAX + 1]) {
      const names = Array.from({ length: steps - 1 }, (_, n) => `m${n}`);
      const answer = await create(
        names.reduceRight<object | string>((value, name) => ({ [name]: value }), '\0') as object,
      );
      const [{ type, loc }] = answer.json().detail;
      assert.deepEqual([type, loc], ['string_nul', ['body', ...names].slice(0, LOC_DEPTH_MAX)], `${steps}`);
    }
  });

  test('take a list of 10,000 repositories, and refuse one more for its length', async () => {
    const ids = Array.from({ length: TOKEN_REPOSITORIES_MAX + 1 }, () => '11111111-1111-4111-8111-111111111111');
    const post = async (repository_ids: readonly string[]) =>
      (await create({ name: 'x', scope: 'SELECTED_REPO', grants: ['ALL'], repository_ids })).json().detail[0].type;
    assert.equal(await post(ids.slice(1)), 'token-unknown-repositories');
    assert.equal(await post(ids), 'too_big');
  });

  test('take an expiry in any offset, and show it in UTC with milliseconds', async () => {
    const answer = await create({
      name: 'x',
      scope: 'ALL_REPO',
      grants: ['ALL', 'ALL'],
      expires_at: '2027-01-01T01:00:00+01:00',
    });
    assert.equal(answer.json().expires_at, '2027-01-01T00:00:00.000Z');
    assert.deepEqual(answer.json().grants, ['ALL']);
  });

  test('change single fields, and obey the rules of a new token', async () => {
    const repository = await fixture.repository(owner, 'scoped');
    const { id } = (await create({ name: 'x', scope: 'ALL_REPO', grants: ['ALL'] })).json();
    assert.equal((await put(id, { name: 'renamed' })).json().name, 'renamed');
    assert.deepEqual((await put(id, { scope: 'SELECTED_REPO' })).json().detail[0].loc, ['body', 'repository_ids']);
    const selected = await put(id, { scope: 'SELECTED_REPO', repository_ids: [repository.id.toUpperCase()] });
    assert.deepEqual(selected.json().repository_ids, [repository.id]);
    assert.equal((await put(id, { scope: 'ALL_REPO' })).statusCode, 422);
    assert.equal((await put(id, { scope: 'ALL_REPO', repository_ids: [] })).statusCode, 200);
    const expiring = await put(id, { expires_at: '2030-01-01T00:00:00Z' });
    assert.equal(expiring.json().expires_at, '2030-01-01T00:00:00.000Z');
    assert.equal((await put(id, { expires_at: null })).json().expires_at, null);
    assert.equal((await put(id, { name: null })).statusCode, 422);
  });

  test('keep the id of a deleted repository in their list', async () => {
    const repository = await fixture.repository(owner, 'short-lived');
    const body = { name: 'x', scope: 'SELECTED_REPO', grants: ['ALL'], repository_ids: [repository.id] };
    const { id } = (await create(body)).json();
    await fixture.request('DELETE', '/v1/repos/ada/short-lived', admin);
    const renamed = await put(id, { name: 'still there' });
    assert.equal(renamed.statusCode, 200);
    assert.deepEqual(renamed.json().repository_ids, [repository.id]);
  });

  test('are not listed or found after they expire', async () => {
    const { id } = (await create({ name: 'x', scope: 'ALL_REPO', grants: ['ALL'] })).json();
    await put(id, { expires_at: new Date(Date.parse(fixture.clock.now()) + 1).toISOString() });
    fixture.clock.advance(1);
    assert.equal((await fixture.request('GET', `/v1/access-tokens/${id}`, admin)).statusCode, 404);
    assert.equal((await put(id, { name: 'y' })).statusCode, 404);
    const list = (await fixture.request('GET', '/v1/access-tokens', admin)).json();
    assert.ok(!list.access_tokens.some((token: { id: string }) => token.id === id));
  });

  test('are 404 for an id that is not a UUID', async () => {
    for (const id of ['x', '%00', 'a%2Fb', '..%2F..', `${admin.id}x`]) {
      assert.equal((await fixture.request('GET', `/v1/access-tokens/${id}`, admin)).statusCode, 404, id);
      assert.equal((await put(id, {})).statusCode, 404, id);
      assert.equal((await fixture.request('DELETE', `/v1/access-tokens/${id}`, admin)).statusCode, 404, id);
    }
  });

  test('change nothing when revoked while their request is under way', async () => {
    // Two requests by one token: the first revokes it after the second was admitted.
    const acting = await fixture.token(owner);
    const [revoked, created] = await Promise.all([
      fixture.request('DELETE', `/v1/access-tokens/${acting.id}`, acting),
      fixture.request('POST', '/v1/repositories', acting, { body: { name: 'too-late' } }),
    ]);
    assert.equal(revoked.statusCode, 204);
    const exists = await fixture.request('GET', '/v1/repos/ada/too-late', admin);
    assert.equal(exists.statusCode, created.statusCode === 201 ? 200 : 404);
    if (created.statusCode !== 201) assert.equal(created.statusCode, 401);
  });

  test('refuse an append that lost its guard, if the token lost the grant in between', async () => {
    let interfere: (() => Promise<void>) | null = null;
    const raced = await createApiFixture({
      wrapEvents: (events) => ({
        ...events,
        append: async (request) => {
          const first = interfere;
          interfere = null;
          await first?.();
          return events.append(request);
        },
      }),
    });
    const account = await raced.account('eve');
    const acting = await raced.token(account);
    const chief = await raced.token(account);
    for (const [change, status] of [
      [{ grants: ['API_REPOS_READ'] }, 401],
      [{ name: 'renamed' }, 201],
    ] as const) {
      await raced.request('PUT', `/v1/access-tokens/${acting.id}`, chief, { body: { grants: ['ALL'] } });
      interfere = async () => {
        await raced.request('PUT', `/v1/access-tokens/${acting.id}`, chief, { body: change });
      };
      const answer = await raced.request('POST', '/v1/repositories', acting, { body: { name: `race-${status}` } });
      assert.equal(answer.statusCode, status);
      const there = await raced.request('GET', `/v1/repos/eve/race-${status}`, chief);
      assert.equal(there.statusCode, status === 201 ? 200 : 404);
    }
    await raced.close();
  });

  test('are a thousand of an account, all listed, and the next is refused until one is revoked', async () => {
    const bob = await fixture.account('bob');
    const maker = await fixture.token(bob);
    const make = () =>
      fixture.request('POST', '/v1/access-tokens', maker, {
        body: { name: 'ci', scope: 'ALL_REPO', grants: ['GIT_HTTP_READ'] },
      });
    for (let n = 0; n < ACCESS_TOKENS_MAX - 2; n += 1) await fixture.token(bob);
    const last = await make();
    assert.equal(last.statusCode, 201);
    const refused = await make();
    assert.equal(refused.statusCode, 422);
    assert.match(refused.json().detail, /at most 1000 access tokens: revoke one/);
    const listed = await fixture.request('GET', '/v1/access-tokens', maker);
    assert.equal(listed.json().access_tokens.length, ACCESS_TOKENS_MAX);
    await fixture.request('DELETE', `/v1/access-tokens/${last.json().id}`, maker);
    assert.equal((await make()).statusCode, 201);
  });
});
