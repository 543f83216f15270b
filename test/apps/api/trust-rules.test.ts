/** Trust rules over REST, as docs/interface.md, OIDC trust, specifies them. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { TRUST_RULE_REPOSITORIES_MAX } from '../../../apps/api/schemas/trust-rules.ts';
import { ALL_REPOSITORIES } from '../../../core/access-token/repository-selection.ts';
import { accounts } from '../../../core/account/evolve.ts';
import type { AccountId, RepositoryId } from '../../../core/kernel/ids.ts';
import { TRUST_RULES_MAX } from '../../../core/kernel/limits.ts';
import { guardedBy } from '../../../core/use-cases/callers/authenticate.ts';
import { stillPermitted } from '../../../core/use-cases/callers/permission.ts';
import { revokeAccessToken, updateAccessToken } from '../../../core/use-cases/tokens/access-tokens.ts';
import { createTrustRule } from '../../../core/use-cases/tokens/trust-rules.ts';
import { authenticate } from '../../support/accounts.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { CAUSE } from '../../support/node.ts';

const RULE = {
  name: 'main',
  issuer: 'https://issuer.example',
  subject: 'repo:acme/site:ref:refs/heads/*',
  claims: { ref: 'refs/heads/main' },
  grants: ['API_OIDC_TRUST', 'GIT_HTTP_READ'],
  scope: 'ALL_REPO',
} as const;

describe('trust rules', () => {
  let fixture: ApiFixture;
  let ada: AccountId;
  let token: TestToken;

  beforeEach(async () => {
    fixture = await createApiFixture();
    ada = await fixture.account('ada');
    token = await fixture.token(ada);
  });
  afterEach(() => fixture.close());

  const create = (body: object, by = token) => fixture.request('POST', '/v1/oidc/trust-rules', by, { body });
  const put = (id: string, body: object, by = token) =>
    fixture.request('PUT', `/v1/oidc/trust-rules/${id}`, by, { body });
  const get = (id: string) => fixture.request('GET', `/v1/oidc/trust-rules/${id}`, token);
  const list = async () => (await fixture.request('GET', '/v1/oidc/trust-rules', token)).json().trust_rules;

  test('are created, read, changed and deleted', async () => {
    const created = await create(RULE);
    assert.equal(created.statusCode, 201, created.body);
    const rule = created.json();
    assert.deepEqual(rule, {
      ...{ id: rule.id, ...RULE, audience: 'http://localhost:8080/ada', repository_ids: [] },
      ...{ created_at: fixture.clock.now(), last_used_at: null },
    });
    const second = (await create({ ...RULE, name: 'second', claims: undefined })).json();
    assert.deepEqual(second.claims, {});
    assert.deepEqual(await list(), [rule, second], 'oldest first');
    const changes = { name: 'other', subject: 'job', claims: {}, grants: ['GIT_HTTP_WRITE'] };
    assert.deepEqual((await put(rule.id, changes)).json(), { ...rule, ...changes });
    assert.deepEqual((await put(rule.id, {})).json(), { ...rule, ...changes });
    assert.deepEqual((await get(rule.id)).json(), { ...rule, ...changes });
    assert.equal((await fixture.request('DELETE', `/v1/oidc/trust-rules/${rule.id}`, token)).statusCode, 204);
    for (const answer of [await get(rule.id), await put(rule.id, {}), await get('no-id')]) {
      assert.deepEqual([answer.statusCode, answer.json()], [404, { detail: 'Trust rule not found' }]);
    }
  });

  test('refuse what they cannot hold, with the field', async () => {
    const { id } = (await create(RULE)).json();
    for (const [wrong, field] of [
      [{ name: '' }, 'name'],
      [{ name: 'x'.repeat(101) }, 'name'],
      [{ issuer: 'http://issuer.example' }, 'issuer'],
      [{ issuer: 'https://user:canary@issuer.example' }, 'issuer'],
      [{ issuer: 'https://issuer.example/?a=b' }, 'issuer'],
      [{ issuer: 'https://issuer.example/#a' }, 'issuer'],
      [{ issuer: 'https://to-10-0-0-1.example' }, 'issuer'],
      [{ issuer: 'https://git.example.org' }, 'issuer'],
      [{ subject: '' }, 'subject'],
      [{ claims: { aud: 'x' } }, 'claims'],
      [{ grants: [] }, 'grants'],
      [{ scope: 'SELECTED_REPO' }, 'repository_ids'],
      [{ repository_ids: ['0190f3e2-7c1a-7b4e-9a35-000000000100'] }, 'repository_ids'],
      [{ scope: 'SELECTED_REPO', repository_ids: ['0190f3e2-7c1a-7b4e-9a35-000000000100'] }, 'repository_ids'],
    ] as const) {
      for (const answer of [await create({ ...RULE, ...wrong }), await put(id, wrong)]) {
        assert.equal(answer.statusCode, 422, JSON.stringify(wrong));
        assert.deepEqual(answer.json().detail[0].loc, ['body', field], JSON.stringify(wrong));
        assert.ok(!answer.body.includes('canary'));
      }
    }
    assert.equal((await create({ ...RULE, subject: undefined })).statusCode, 422);
    // A pattern is a text: as a number a long one would be rounded to its neighbour.
    for (const answer of [await create({ ...RULE, claims: { run: 5 } }), await put(id, { claims: { run: 5 } })]) {
      assert.deepEqual([answer.statusCode, answer.json().detail[0].loc], [422, ['body', 'claims', 'run']]);
    }
    // Without this claim the rule would let in more than its owner asked for.
    const claims = { ['__proto__']: 'main', run: '5' };
    for (const answer of [await create({ ...RULE, claims }), await put(id, { claims })]) {
      assert.deepEqual([answer.statusCode, answer.json().detail?.[0].loc], [422, ['body', 'claims', '__proto__']]);
    }
  });

  test('hold as many repositories as the limit, and refuse one more', async () => {
    const repository_ids: RepositoryId[] = [];
    for (let n = 0; n <= TRUST_RULE_REPOSITORIES_MAX; n += 1) {
      repository_ids.push((await fixture.repository(ada, `repository-${n}`)).id);
    }
    const body = { ...RULE, scope: 'SELECTED_REPO' };
    assert.equal((await create({ ...body, repository_ids })).statusCode, 422);
    assert.equal((await create({ ...body, repository_ids: repository_ids.slice(1) })).statusCode, 201);
  });

  test('are at most twenty in an account, even if thirty are created at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => create(RULE)));
    assert.equal(answers.filter(({ statusCode }) => statusCode === 201).length, TRUST_RULES_MAX);
    const refused = answers.find(({ statusCode }) => statusCode !== 201);
    assert.deepEqual(
      [refused?.statusCode, refused?.json()],
      [422, { detail: 'An account has at most 20 trust rules' }],
    );
  });

  // The attack: a token that may only manage rules makes one that grants everything, or widens one of its owner.
  test('carry no more than the token of their maker, at creation and at every change', async () => {
    const manager = await fixture.token(ada, { grants: ['API_OIDC_TRUST', 'GIT_HTTP_WRITE'] });
    for (const grants of [['ALL'], ['API_REPOS_READ'], ['GIT_HTTP_READ', 'API_WEBHOOKS']]) {
      const answer = await create({ ...RULE, grants }, manager);
      assert.equal(answer.statusCode, 403, grants.join());
      assert.match(
        answer.json().detail,
        /cannot carry more than your own token, which lacks (ALL|API_REPOS_READ|API_WEBHOOKS)/,
      );
    }
    const { id } = (await create({ ...RULE, grants: ['GIT_HTTP_READ'] }, manager)).json();
    assert.equal((await put(id, { grants: ['GIT_HTTP_WRITE', 'API_OIDC_TRUST'] }, manager)).statusCode, 200);
    assert.equal((await put(id, { grants: ['API_STORAGE'] }, manager)).statusCode, 403);
    const whole = (await create({ ...RULE, grants: ['ALL'] })).json();
    assert.equal((await put(whole.id, { subject: 'repo:evil/x' }, manager)).statusCode, 403, 'whatever is changed');
    assert.equal((await put(whole.id, { subject: 'repo:evil/x', grants: ['GIT_HTTP_READ'] }, manager)).statusCode, 200);
  });

  // The attack: the maker's token is revoked, or loses grants, while its request is under way.
  test('are not made by a token that was revoked or has lost a grant in between', async () => {
    for (const lose of [
      (id: TestToken['id']) => revokeAccessToken(fixture.context, { account: ada, cause: CAUSE }, id),
      (id: TestToken['id']) =>
        updateAccessToken(fixture.context, { account: ada, cause: CAUSE }, id, { grants: ['API_OIDC_TRUST'] }),
    ]) {
      const maker = await fixture.token(ada);
      const principal = await authenticate(fixture.context, maker.secret);
      assert.ok(principal?.kind === 'access-token');
      const requirement = { grant: 'API_OIDC_TRUST', scope: 'ALL_REPO', onItself: false } as const;
      const guarding = guardedBy(
        fixture.context,
        principal,
        stillPermitted(principal, { requirement, id: '', repository: null }),
      );
      await lose(maker.id);
      const made = await createTrustRule(
        fixture.context,
        { account: ada, cause: CAUSE, guarding, maker: { grants: ['ALL'], selection: ALL_REPOSITORIES } },
        { ...RULE, grants: ['ALL'], repositoryIds: [] },
      );
      assert.deepEqual(made, { refused: { code: 'token-no-longer-valid' } });
    }
    assert.deepEqual(await list(), []);
  });

  test('leave no vault record behind that no rule names', async () => {
    const conditions = async () => {
      const { state } = await fixture.context.entities.reload(accounts, ada);
      assert.ok(state.status === 'open');
      return [...state.trustRules.values()].map(({ conditionsRef }) => conditionsRef);
    };
    const { id } = (await create(RULE)).json();
    const [before] = await conditions();
    await put(id, { subject: 'job' });
    const [after] = await conditions();
    assert.ok(before !== undefined && after !== undefined && before !== after);
    const { vault } = fixture.context;
    assert.equal(await vault.get(ada, 'oidc-conditions', before), null);
    assert.notEqual(await vault.get(ada, 'oidc-conditions', after), null);
    await fixture.request('DELETE', `/v1/oidc/trust-rules/${id}`, token);
    assert.equal(await vault.get(ada, 'oidc-conditions', after), null);
    assert.ok(!fixture.logged.join().includes('repo:acme'));
  });
});
