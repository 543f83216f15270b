/** Who could read a repository as of a moment, and who did, over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PAGE_LIMIT_MAX } from '../../../apps/api/schemas/common.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { NOT_METERED } from '../../../core/use-cases/auditing/repository-accesses.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

interface Subject {
  readonly kind: string;
  readonly id: string;
  readonly name: string | null;
  readonly grants: readonly string[];
  readonly scope: string;
  readonly event_id: string;
}

describe('GET /v1/repos/{username}/{name}/access', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let before: string;

  beforeAll(async () => {
    fixture = await createApiFixture();
    account = await fixture.account('ada');
    before = fixture.clock.now();
    fixture.clock.advance(60_000);
    repository = await fixture.repository(account, 'engine');
    token = await fixture.token(account);
  });
  afterAll(() => fixture.close());

  const get = (query = '', by: TestToken | null = token) =>
    fixture.request('GET', `/v1/repos/ada/engine/access${query}`, by);
  const subjects = async (query = ''): Promise<readonly Subject[]> => {
    const answer = await get(query);
    assert.equal(answer.statusCode, 200, answer.body);
    return answer.json().subjects;
  };
  const ids = async (kind: string, at?: string): Promise<readonly string[]> =>
    (await subjects(at === undefined ? '' : `?at=${at}`)).filter((one) => one.kind === kind).map(({ id }) => id);

  test('names the owner, webhooks, tokens and trust rules, each with the event that gave it', async () => {
    const other = await fixture.repository(account, 'other');
    const webhook = await fixture.webhook(account);
    const rule = await fixture.trustRule(account, { grants: ['API_COMMITS_READ'] });
    const reads = await fixture.token(account, { grants: ['GIT_HTTP_READ'] });
    const selected = { scope: 'SELECTED_REPO' as const };
    const here = await fixture.token(account, { ...selected, repositoryIds: [repository.id] });
    // Neither may read what is in this repository.
    await fixture.token(account, { ...selected, repositoryIds: [other.id] });
    await fixture.token(account, { grants: ['API_REPOS_READ', 'API_WEBHOOKS'] });
    const shown = await subjects();
    const [owner] = shown;
    assert.deepEqual(
      [owner?.kind, owner?.id, owner?.name, owner?.grants, owner?.scope],
      ['user', account, 'ada', ['ALL'], 'ALL_REPO'],
    );
    assert.deepEqual(
      shown.filter(({ kind }) => kind === 'token').map(({ id }) => id),
      [token.id, reads.id, here.id].toSorted(),
    );
    assert.deepEqual(
      shown.filter(({ kind }) => kind === 'webhook' || kind === 'trust_rule').map(({ id }) => id),
      [webhook, rule],
    );
    const types = new Map<string, string>();
    for (const { kind, event_id } of shown) {
      const { entry } = (await fixture.request('GET', `/v1/account/events/${event_id}`, token)).json();
      types.set(kind, entry.type);
    }
    assert.deepEqual(
      [...types],
      [
        ['user', 'AccountCreated'],
        ['webhook', 'WebhookCreated'],
        ['token', 'AccessTokenCreated'],
        ['trust_rule', 'TrustRuleCreated'],
      ],
    );
  });

  test('has tokens that were revoked since, with what they were allowed then, and none that had expired', async () => {
    const revoked = await fixture.token(account);
    const narrowed = await fixture.token(account);
    const expiring = await fixture.token(account);
    const expires_at = new Date(Date.parse(fixture.clock.now()) + 60_000).toISOString();
    const change = (id: string, body: object) => fixture.request('PUT', `/v1/access-tokens/${id}`, token, { body });
    assert.equal((await change(expiring.id, { expires_at })).statusCode, 200);
    const then = fixture.clock.now();
    fixture.clock.advance(60_000);
    await fixture.request('DELETE', `/v1/access-tokens/${revoked.id}`, token);
    assert.equal((await change(narrowed.id, { grants: ['API_WEBHOOKS'] })).statusCode, 200);
    const could = await ids('token', then);
    for (const one of [revoked, narrowed, expiring]) assert.ok(could.includes(one.id));
    const can = await ids('token');
    for (const one of [revoked, narrowed, expiring]) assert.ok(!can.includes(one.id));
    const { at, sequence } = (await get(`?at=${then}`)).json();
    assert.equal(at, then);
    const state = (await fixture.request('GET', `/v1/account/state?at=${then}`, token)).json();
    assert.equal(sequence, state.sequence);
  });

  test('is not there before the repository was made, and refused for moments to come and for junk', async () => {
    const none = await get(`?at=${before}`);
    assert.deepEqual([none.statusCode, none.json()], [404, { detail: 'The repository did not exist at this moment' }]);
    for (const at of ['9999-01-01T00:00:00Z', 'yesterday', '']) {
      assert.equal((await get(`?at=${at}`)).statusCode, 422, at);
    }
    assert.equal((await get('?when=now')).statusCode, 422);
  });

  // The attack: a token for one repository asks who else can read it.
  test('is refused to a token without ALL and ALL_REPO, and to other accounts', async () => {
    for (const path of ['access', 'accesses']) {
      const url = `/v1/repos/ada/engine/${path}`;
      const selected = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [repository.id] });
      const reader = await fixture.token(account, { grants: ['GIT_HTTP_READ'] });
      for (const one of [selected, reader]) assert.equal((await fixture.request('GET', url, one)).statusCode, 403);
      const stranger = await fixture.token(await fixture.account(`eve-${path}`));
      assert.equal((await fixture.request('GET', url, stranger)).statusCode, 404);
      assert.equal((await fixture.request('GET', url, null)).statusCode, 401);
    }
  });
});

describe('GET /v1/repos/{username}/{name}/accesses', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;

  beforeAll(async () => {
    fixture = await createApiFixture({
      sourceAddressRef: (of, address) => fixture.vault.put(of, 'source-address', address),
    });
    account = await fixture.account('ada');
    token = await fixture.token(account);
    repository = await fixture.repository(account, 'engine');
  });
  afterAll(() => fixture.close());

  const get = (query = '') => fixture.request('GET', `/v1/repos/ada/engine/accesses${query}`, token);

  test('counts reads and pushes by the minute and actor, with their addresses, in pages', async () => {
    const start = fixture.clock.now();
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    await fixture.push(repository, { 'refs/heads/main': tip });
    const { transfer } = fixture.context;
    const read = (reader: { kind: 'token' | 'user'; id: string }, address: string): void =>
      transfer.add({ account, reader, repository: repository.id, sentBytes: 0, address });
    read({ kind: 'token', id: token.id }, '192.0.2.1');
    read({ kind: 'token', id: token.id }, '192.0.2.2');
    read({ kind: 'user', id: account }, '192.0.2.1');
    fixture.clock.advance(60_000);
    read({ kind: 'user', id: account }, '');
    await transfer.flush();
    const answer = await get();
    assert.equal(answer.statusCode, 200, answer.body);
    const { accesses, pagination, not_metered } = answer.json();
    assert.deepEqual(not_metered, NOT_METERED);
    const told = accesses.map((one: Record<string, unknown>) => [
      one['kind'],
      one['reads'],
      one['pushes'],
      one['restores'],
    ]);
    assert.deepEqual(told, [
      ['admin', 0, 1, 0],
      ['token', 2, 0, 0],
      ['user', 1, 0, 0],
      ['user', 1, 0, 0],
    ]);
    const [, ofToken] = accesses;
    const addresses = Object.values<{ value: string }>(ofToken.addresses).map(({ value }) => value);
    assert.deepEqual(addresses.toSorted(), ['192.0.2.1', '192.0.2.2']);
    assert.deepEqual([ofToken.id, ofToken.whole_day, pagination.has_more], [token.id, false, false]);
    const paged: unknown[] = [];
    for (let query = '?limit=1'; ; ) {
      const page = (await get(query)).json();
      paged.push(...page.accesses);
      if (!page.pagination.has_more) break;
      query = `?limit=1&after=${encodeURIComponent(page.pagination.next_after)}`;
    }
    assert.deepEqual(paged, accesses);
    const later = fixture.clock.now();
    const since = (await get(`?since=${later}`)).json().accesses;
    const until = (await get(`?since=${start}&until=${later.slice(0, 16)}:00Z`)).json().accesses;
    assert.deepEqual([...until, ...since], accesses, 'since is included, until is not');
  });

  test('refuses what is no time, no place and no page', async () => {
    for (const query of [
      ...['since=yesterday', 'until=2026', 'after=x', `limit=${PAGE_LIMIT_MAX + 1}`, 'limit=0', 'at=now'],
      ...[`after=2026-11-21T10:00:00.000Z~minute~robot~x`, 'after=2026-11-21T10:00:00.000Z~hour~token~x'],
      ...['after=2026-11-21T10:00:00.000Z~minute~token~', 'after=2026-11-21T10:00:00.000Z~minute~token~x~y'],
    ]) {
      assert.equal((await get(`?${query}`)).statusCode, 422, query);
    }
  });
});
