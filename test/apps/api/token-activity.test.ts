/** What became of an access token, and what was done with it, over REST. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

describe('GET /v1/access-tokens/{id}/activity', () => {
  let fixture: ApiFixture;
  let account: AccountId;
  let owner: TestToken;
  let repository: FoundRepository;

  beforeAll(async () => {
    fixture = await createApiFixture({
      sourceAddressRef: async (id, address) => fixture.vault.put(id, 'source-address', address),
    });
    account = await fixture.account('ada');
    owner = await fixture.token(account);
    repository = await fixture.repository(account, 'project');
  });
  afterAll(() => fixture.close());

  const get = (id: string, query = '', by: TestToken | null = owner) =>
    fixture.request('GET', `/v1/access-tokens/${id}/activity${query}`, by);

  test('shows each change of a token, also after it was revoked', async () => {
    const { id } = await fixture.token(account, { grants: ['API_REPOS_READ'] });
    const url = `/v1/access-tokens/${id}`;
    const expires_at = '2099-01-01T00:00:00.000Z';
    const selection = { scope: 'SELECTED_REPO', repository_ids: [repository.id] };
    assert.equal((await fixture.request('PUT', url, owner, { body: { expires_at } })).statusCode, 200);
    assert.equal((await fixture.request('PUT', url, owner, { body: selection })).statusCode, 200);
    assert.equal((await fixture.request('DELETE', url, owner)).statusCode, 204);
    const answer = await get(id);
    assert.equal(answer.statusCode, 200, answer.body);
    const { changes, used, pagination } = answer.json();
    const first = {
      grants: ['API_REPOS_READ'],
      scope: 'ALL_REPO',
      repository_ids: [],
      expires_at: null,
      revoked: false,
    };
    assert.deepEqual(
      changes.map(({ at: _at, event_id: _id, ...allowed }: Record<string, unknown>) => allowed),
      [
        first,
        { ...first, expires_at },
        { ...first, expires_at, ...selection },
        { ...first, expires_at, ...selection, revoked: true },
      ],
    );
    assert.deepEqual([used, pagination.has_more], [[], false]);
    const paged: unknown[] = [];
    for (let after = '', more = true; more; ) {
      const page = (await get(id, `?limit=1${after}`)).json();
      paged.push(...page.changes);
      more = page.pagination.has_more;
      after = `&after=${encodeURIComponent(page.pagination.next_after)}`;
    }
    assert.deepEqual(paged, changes);
  });

  test('shows reads and writes by minute and repository, with addresses that the references commit to', async () => {
    const token = await fixture.token(account);
    const tip = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
    const before = fixture.clock.now();
    fixture.clock.advance(1_000);
    await fixture.push(repository, { 'refs/heads/main': tip });
    const url = '/v1/repos/ada/project/restore';
    const restored = await fixture.request('POST', url, token, { body: { at: before } });
    assert.equal(restored.statusCode, 200, restored.body);
    const reader = { kind: 'token', id: token.id } as const;
    for (const address of ['192.0.2.7', '198.51.100.1']) {
      fixture.context.transfer.add({ account, reader, repository: repository.id, sentBytes: 7, address });
    }
    await fixture.context.transfer.flush();
    const { used } = (await get(token.id)).json();
    const [use] = used;
    assert.deepEqual([used.length, use.repository_id, use.reads, use.writes], [1, repository.id, 2, 1]);
    const addresses = Object.entries<{ nonce: string; value: string }>(use.addresses);
    assert.deepEqual(addresses.map(([, { value }]) => value).toSorted(), ['127.0.0.1', '192.0.2.7', '198.51.100.1']);
    for (const [ref, { nonce, value }] of addresses) {
      const commitment = createHash('sha256').update(Buffer.from(nonce, 'hex')).update(value, 'utf8').digest('hex');
      assert.equal(ref, commitment);
    }
    await fixture.vault.eraseAccount(account);
    assert.deepEqual((await get(token.id)).json().used[0].addresses, {}, 'an erased address is left out');
  });

  test('refuses invalid places', async () => {
    const id = '0190f3e2-7c1a-7b4e-9a35-000000000000';
    for (const after of ['', 'x', '1~2', `1~2026-11-21T10:00:00.000Z`, `1~2026-11-21T10:00:00.000Z~${id}~0`, '-1']) {
      assert.equal((await get(owner.id, `?after=${after}`)).statusCode, 422, after);
    }
  });

  // The attack: the owner of another account asks when and from where a token is used whose id it has seen.
  test('is not found for a token of another account, and refused without ALL and ALL_REPO', async () => {
    const eve = await fixture.token(await fixture.account('eve'));
    const unknown = '0190f3e2-7c1a-7b4e-9a35-000000000000';
    const [theirs, nothing] = [await get(owner.id, '', eve), await get(unknown, '', eve)];
    assert.deepEqual([theirs.statusCode, theirs.body], [404, nothing.body]);
    assert.equal((await get('no-uuid')).statusCode, 404);
    const reader = await fixture.token(account, { grants: ['API_REPOS_READ'] });
    assert.equal((await get(reader.id, '', reader)).statusCode, 403);
    assert.equal((await get(owner.id, '', null)).statusCode, 401);
  });
});
