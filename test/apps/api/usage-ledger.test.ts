/** The usage ledger over REST. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { ENTRIES_PAGE_LIMIT_MAX } from '../../../apps/api/limits.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('GET /v1/account/usage/ledger', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let token: TestToken;
  let repository: FoundRepository;
  let month: string;

  beforeAll(async () => {
    fixture = await createApiFixture();
    month = fixture.clock.now().slice(0, 7);
    account = await fixture.account('ada');
    token = await fixture.token(account);
    repository = await fixture.repository(account, 'project');
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    await fixture.push(repository, { 'refs/heads/main': tip }, 500);
    const reader = { kind: 'token', id: token.id } as const;
    fixture.context.transfer.add({ account, reader, repository: repository.id, sentBytes: 7, address: '' });
    await fixture.context.transfer.flush();
  });
  afterAll(() => fixture.close());

  const get = (query = '', by: TestToken | null = token) =>
    fixture.request('GET', `/v1/account/usage/ledger${query}`, by);

  test('names what each figure is the sum of, and its totals are those of the usage', async () => {
    const answer = await get();
    assert.equal(answer.statusCode, 200, answer.body);
    const ledger = answer.json();
    assert.deepEqual([ledger.month, ledger.opening], [month, { repos: 0, storage_bytes: 0 }]);
    const usage = (await fixture.request('GET', '/v1/account/usage', token)).json();
    for (const [member, total] of Object.entries(ledger.totals)) assert.equal(total, usage[member].used, member);
    const sums: Record<string, number> = { repos: 0, storage_bytes: 0, transfer_bytes: 0, ingress_bytes: 0 };
    for (const { member, delta } of ledger.entries) sums[member] = (sums[member] ?? 0) + delta;
    assert.deepEqual(sums, ledger.totals);
    const sent = ledger.entries.find(({ member }: { readonly member: string }) => member === 'transfer_bytes');
    assert.deepEqual([sent.delta, sent.repository_id, sent.token_id], [7, repository.id, token.id]);
    const members = ['event_id', 'member', 'delta', 'at', 'repository_id', 'token_id'];
    assert.deepEqual(Object.keys(sent), [...members, 'operational']);
  });

  test('names events that the log has, and marks those that it has not as operational', async () => {
    const { entries } = (await get()).json();
    const marks = new Set(entries.map((one: { operational?: unknown }) => one.operational));
    assert.deepEqual(marks, new Set([true, undefined]));
    for (const { event_id, operational } of entries) {
      const read = await fixture.request('GET', `/v1/account/events/${event_id}`, token);
      assert.equal(read.statusCode, operational === true ? 404 : 200, event_id);
    }
  });

  test('refuses a month that has not begun, as the state refuses a moment', async () => {
    const year = Number(month.slice(0, 4));
    const next = month.endsWith('-12')
      ? `${year + 1}-01`
      : `${year}-${String(Number(month.slice(5)) + 1).padStart(2, '0')}`;
    for (const one of [next, '9999-12']) {
      const answer = await get(`?month=${one}`);
      assert.deepEqual([answer.statusCode, answer.json()], [422, { detail: 'This moment has not come yet' }], one);
    }
    assert.equal((await get(`?month=${month}`)).statusCode, 200);
  });

  test('continues a page where the last one ended', async () => {
    const { entries } = (await get()).json();
    const paged: unknown[] = [];
    for (let after = '', more = true; more; ) {
      const page = (await get(`?limit=1${after}`)).json();
      paged.push(...page.entries);
      more = page.pagination.has_more;
      after = `&after=${encodeURIComponent(page.pagination.next_after)}`;
    }
    assert.deepEqual(paged, entries);
    const empty = (await get('?month=2001-01')).json();
    assert.deepEqual([empty.entries, empty.pagination], [[], { next_after: null, has_more: false }]);
  });

  test('refuses invalid months and places, and too long a page', async () => {
    const id = '0190f3e2-7c1a-7b4e-9a35-000000000000';
    for (const query of [
      ...['month=2026-13', 'month=2026-00', 'month=0000-01', 'month=2026-1', 'month=2026-11-01'],
      ...['after=1', `after=2026-11-21~${id}~0`, `after=2026-11-21T10:00:00.000Z~${id}~-1`],
      ...[`after=2026-11-21T10:00:00.000Z~${id}~0~0`, `after=2026-11-21T10:00:00.000Z~${id}~9999999999`],
      ...[`limit=${ENTRIES_PAGE_LIMIT_MAX + 1}`, 'limit=0'],
    ]) {
      assert.equal((await get(`?${query}`)).statusCode, 422, query);
    }
    assert.equal((await get(`?limit=${ENTRIES_PAGE_LIMIT_MAX}`)).statusCode, 200);
  });

  // The attack: a token for one repository asks who reads the others, and when.
  test('is refused to a token without ALL and ALL_REPO, and shows nothing of another account', async () => {
    const reader = await fixture.token(account, { grants: ['API_REPOS_READ'] });
    const selected = await fixture.token(account, { scope: 'SELECTED_REPO', repositoryIds: [repository.id] });
    for (const one of [reader, selected]) assert.equal((await get('', one)).statusCode, 403);
    assert.equal((await get('', null)).statusCode, 401);
    const stranger = await fixture.token(await fixture.account('eve'));
    assert.deepEqual((await get('', stranger)).json().entries, []);
  });
});
