/** Permissions: every route in a matrix of grants and scopes, against docs/interface.md, Grants. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { ROUTES } from '../../../apps/api/routes.ts';
import { ALL_REPOSITORIES, type RepositorySelection } from '../../../core/access-token/repository-selection.ts';
import { GRANTS, type Grant } from '../../../core/kernel/grants.ts';
import { type AccountId, EMPTY_TREE_ID, type ObjectId, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { withoutChanges } from '../../support/no-history.ts';

interface Expectation {
  /** The grants each of which alone suffices; null: no grant is needed. */
  readonly grants: readonly Grant[] | null;
  /** `includes-webhook`: the scope includes all repositories that the webhook covers. */
  readonly scope: 'any' | 'ALL_REPO' | 'includes-repository' | 'includes-webhook';
  readonly body?: object;
  /** The parameters that the route requires. */
  readonly query?: string;
  /** The status of success. */
  readonly status: number;
}

/** Written from docs/interface.md's permission table, not from the routes. */
const EXPECTED: Readonly<Record<string, Expectation>> = {
  getUsage: { grants: null, scope: 'any', status: 200 },
  listUsageLedger: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  exportAccountLog: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getAccountEvent: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  listAccountEvents: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getRepositoryAccess: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  listRepositoryAccesses: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  listSignIns: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  listRepositories: { grants: ['ALL', 'API_REPOS_READ', 'API_REPOS_WRITE'], scope: 'any', status: 200 },
  createRepository: {
    grants: ['ALL', 'API_REPOS_WRITE'],
    scope: 'ALL_REPO',
    body: { name: 'created' },
    status: 201,
  },
  getRepository: {
    grants: ['ALL', 'API_REPOS_READ', 'API_REPOS_WRITE'],
    scope: 'includes-repository',
    status: 200,
  },
  updateRepository: { grants: ['ALL', 'API_REPOS_WRITE'], scope: 'includes-repository', body: {}, status: 200 },
  deleteRepository: { grants: ['ALL', 'API_REPOS_WRITE'], scope: 'includes-repository', status: 204 },
  listBranches: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getArchive: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getBranch: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  updateRefs: {
    grants: ['ALL', 'GIT_HTTP_WRITE'],
    scope: 'includes-repository',
    body: { updates: [{ ref: 'refs/heads/gone', expected: 'any', after: null }] },
    status: 200,
  },
  writeCommit: {
    grants: ['ALL', 'GIT_HTTP_WRITE'],
    scope: 'includes-repository',
    body: {
      ...{ branch: 'master', expected: 'any', message: 'The same' },
      changes: [{ action: 'put', path: 'file', content: 'text' }],
    },
    status: 200,
  },
  createTag: {
    grants: ['ALL', 'GIT_HTTP_WRITE'],
    scope: 'includes-repository',
    body: { name: 'made', target: EMPTY_TREE_ID, expected: 'any' },
    status: 201,
  },
  listTags: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  compareRefs: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getCommitDiff: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getCommitPatch: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getCommit: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  listCommits: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  listActivity: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getAccountState: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  listRefs: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getLatestCheckpoint: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getInclusionProof: { grants: ['ALL'], scope: 'ALL_REPO', query: '?sequence=0&tree_size=1', status: 200 },
  getConsistencyProof: { grants: ['ALL'], scope: 'ALL_REPO', query: '?from=1&to=1', status: 200 },
  restoreRefs: {
    grants: ['ALL'],
    scope: 'ALL_REPO',
    // It names no moment, which is told to those who may restore.
    body: {},
    status: 422,
  },
  listDeletedRepositories: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  undeleteRepository: { grants: ['ALL'], scope: 'ALL_REPO', body: {}, status: 200 },
  purgeRepository: { grants: ['ALL'], scope: 'ALL_REPO', body: { dry_run: true }, status: 200 },
  getBlob: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  findFiles: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  searchCode: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', query: '?q=text', status: 200 },
  getTree: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getRootContents: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getRawContents: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getContents: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  getBlame: { grants: ['ALL', 'API_COMMITS_READ'], scope: 'includes-repository', status: 200 },
  createAccessToken: {
    grants: ['ALL'],
    scope: 'ALL_REPO',
    body: { name: 'made', scope: 'ALL_REPO', grants: ['ALL'] },
    status: 201,
  },
  listAccessTokens: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getAccessToken: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  getAccessTokenActivity: { grants: ['ALL'], scope: 'ALL_REPO', status: 200 },
  updateAccessToken: { grants: ['ALL'], scope: 'ALL_REPO', body: {}, status: 200 },
  deleteAccessToken: { grants: ['ALL'], scope: 'ALL_REPO', status: 204 },
  createWebhook: {
    grants: ['ALL', 'API_WEBHOOKS'],
    scope: 'any',
    body: { url: 'https://receiver.example/', events: ['push'] },
    status: 201,
  },
  listWebhooks: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'any', status: 200 },
  getWebhook: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', status: 200 },
  updateWebhook: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', body: {}, status: 200 },
  rotateWebhookSecret: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', status: 200 },
  deleteWebhook: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', status: 204 },
  pingWebhook: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', status: 202 },
  listWebhookDeliveries: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', status: 200 },
  createStorageBucket: {
    grants: ['ALL', 'API_STORAGE'],
    scope: 'any',
    body: {
      ...{ name: 'made', provider: 'S3', auth_mode: 'OIDC', bucket_name: 'layers' },
      role_arn: 'arn:aws:iam::123456789012:role/strata',
    },
    status: 201,
  },
  listStorageBuckets: { grants: ['ALL', 'API_STORAGE'], scope: 'any', status: 200 },
  getStorageBucket: { grants: ['ALL', 'API_STORAGE'], scope: 'any', status: 200 },
  updateStorageBucket: { grants: ['ALL', 'API_STORAGE'], scope: 'any', body: {}, status: 200 },
  deleteStorageBucket: { grants: ['ALL', 'API_STORAGE'], scope: 'any', status: 204 },
  verifyStorageBucket: { grants: ['ALL', 'API_STORAGE'], scope: 'any', status: 200 },
  listStorageBucketErrors: { grants: ['ALL', 'API_STORAGE'], scope: 'any', status: 200 },
  getOidcSetup: { grants: ['ALL', 'API_STORAGE'], scope: 'any', status: 200 },
  createTrustRule: {
    grants: ['ALL', 'API_OIDC_TRUST'],
    scope: 'ALL_REPO',
    body: {
      name: 'made',
      issuer: 'https://issuer.example',
      subject: 'job',
      grants: ['API_OIDC_TRUST'],
      scope: 'ALL_REPO',
    },
    status: 201,
  },
  listTrustRules: { grants: ['ALL', 'API_OIDC_TRUST'], scope: 'ALL_REPO', status: 200 },
  getTrustRule: { grants: ['ALL', 'API_OIDC_TRUST'], scope: 'ALL_REPO', status: 200 },
  updateTrustRule: { grants: ['ALL', 'API_OIDC_TRUST'], scope: 'ALL_REPO', body: {}, status: 200 },
  deleteTrustRule: { grants: ['ALL', 'API_OIDC_TRUST'], scope: 'ALL_REPO', status: 204 },
  listRefusedExchanges: { grants: ['ALL', 'API_OIDC_TRUST'], scope: 'ALL_REPO', status: 200 },
  redeliverWebhookDelivery: { grants: ['ALL', 'API_WEBHOOKS'], scope: 'includes-webhook', status: 202 },
};

const PUBLIC = new Set([
  ...['getOpenApi', 'getOpenApi30', 'getIssuer', 'getPublicKeys', 'getLogKeys', 'listLogKeys'],
  ...['createDeviceSession', 'pollDeviceSession'],
  'exchangeIdentityToken',
]);

describe('permissions of every route', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let other: FoundRepository;
  let stranger: AccountId;
  let blob: ObjectId;
  let tree: ObjectId;
  let tip: ObjectId;
  let username: string;
  let [accounts, repositories] = [0, 0];

  beforeAll(async () => {
    fixture = await createApiFixture({ objects: ({ database }) => withoutChanges(database) });
    stranger = await fixture.account('bob');
    blob = fixture.objects.blob('text');
    tree = fixture.objects.tree({ file: ['100644', blob] });
    tip = fixture.objects.commit({ tree, seconds: 1 });
    await fixture.repository(stranger, 'theirs');
  });
  // All tests together make more tokens than one account may have.
  beforeEach(async () => {
    accounts += 1;
    username = `ada-${accounts}`;
    owner = await fixture.account(username);
    other = await fixture.repository(owner, 'other');
  });
  afterAll(() => fixture.close());

  /** A repository with a commit and a file, so that every read of it succeeds. */
  async function newRepository(): Promise<FoundRepository> {
    repositories += 1;
    const repository = await fixture.repository(owner, `repository-${repositories}`);
    await fixture.push(repository, { 'refs/heads/master': tip });
    return repository;
  }

  async function call(
    operationId: string,
    token: TestToken | null,
    path: { name: string; username?: string; id?: RepositoryId },
  ) {
    const route = ROUTES.find((candidate) => candidate.operationId === operationId);
    const expected = EXPECTED[operationId];
    assert.ok(route !== undefined && expected !== undefined);
    const target = await fixture.token(owner);
    const toldOf: RepositorySelection =
      path.id === undefined ? ALL_REPOSITORIES : { scope: 'SELECTED_REPO', repositoryIds: [path.id] };
    const webhook = route.path.startsWith('/v1/webhooks') ? await fixture.webhook(owner, toldOf) : null;
    const rule = route.path.startsWith('/v1/oidc') ? await fixture.trustRule(owner) : null;
    const delivery =
      webhook !== null && route.path.includes('{delivery_id}') ? await fixture.delivery(owner, webhook) : '';
    const deleted = route.path.startsWith('/v1/repositories/{id}') ? await fixture.deletedRepository(owner) : null;
    const bucket = route.path.startsWith('/v1/storage-buckets/{id}') ? await fixture.bucket(owner) : null;
    const [first] = await fixture.context.readModels.entryPlaces(owner, null, { from: 0, to: 1, limit: 1 });
    const event = route.path.startsWith('/v1/account/events/{id}') ? first?.eventId : undefined;
    const url = route.path
      .replace('{username}', path.username ?? username)
      .replace('{name}', path.name)
      .replace('{id}', rule ?? webhook ?? bucket ?? deleted ?? event ?? target.id)
      .replace('{delivery_id}', delivery)
      .replace('{path}', 'file')
      .replace('{branch}', 'master')
      .replace('{archive}', 'master.zip')
      .replace('{comparison}', 'master...master')
      .replace('{blob}', blob)
      .replace('{tree}', tree)
      .replace('{hexsha}', tip);
    const { body, query = '' } = expected;
    const unique = body !== undefined && 'name' in body ? { ...body, name: `made-${target.id}` } : body;
    return fixture.request(route.method, `${url}${query}`, token, unique === undefined ? {} : { body: unique });
  }

  test('the table here covers every route', () => {
    const ids = ROUTES.map(({ operationId }) => operationId);
    assert.equal(new Set(ids).size, ids.length);
    assert.deepEqual(ids.filter((id) => !PUBLIC.has(id)).toSorted(), Object.keys(EXPECTED).toSorted());
  });

  for (const [operationId, expected] of Object.entries(EXPECTED)) {
    test(`${operationId} takes exactly the grants and scopes of the contract`, async () => {
      for (const grant of GRANTS) {
        for (const scope of ['ALL_REPO', 'including', 'excluding'] as const) {
          const repository = await newRepository();
          const token = await fixture.token(owner, {
            grants: [grant],
            ...(scope === 'ALL_REPO'
              ? {}
              : { scope: 'SELECTED_REPO', repositoryIds: [scope === 'including' ? repository.id : other.id] }),
          });
          const answer = await call(operationId, token, { name: repository.owned.name, id: repository.id });
          const what = `${operationId} with ${grant} and ${scope}`;
          if (expected.grants !== null && !expected.grants.includes(grant)) {
            assert.equal(answer.statusCode, 403, what);
            assert.match(answer.json().detail, /^This token lacks the grant [A-Z_]+$/, what);
          } else if (expected.scope === 'ALL_REPO' && scope !== 'ALL_REPO') {
            assert.equal(answer.statusCode, 403, what);
            assert.deepEqual(answer.json(), { detail: 'This token lacks the scope ALL_REPO' }, what);
          } else if (expected.scope === 'includes-repository' && scope === 'excluding') {
            assert.equal(answer.statusCode, 404, what);
            assert.deepEqual(answer.json(), { detail: 'Repository not found' }, what);
          } else if (expected.scope === 'includes-webhook' && scope === 'excluding') {
            assert.equal(answer.statusCode, 404, what);
            assert.deepEqual(answer.json(), { detail: 'Webhook not found' }, what);
          } else {
            assert.equal(answer.statusCode, expected.status, `${what}: ${answer.body}`);
          }
        }
      }
    });

    test(`${operationId} refuses a missing or invalid token with 401`, async () => {
      const repository = await newRepository();
      const path = { name: repository.owned.name };
      const valid = await fixture.token(owner);
      const expired = await fixture.token(owner, { expiresAt: null });
      await fixture.request('PUT', `/v1/access-tokens/${expired.id}`, valid, {
        body: { expires_at: new Date(Date.parse(fixture.clock.now()) + 1_000).toISOString() },
      });
      // Longer than the failed tokens of the routes before count.
      fixture.clock.advance(60_000);
      const revoked = await fixture.token(owner);
      await fixture.request('DELETE', `/v1/access-tokens/${revoked.id}`, valid);
      const unknown = { id: valid.id, secret: newTokenSecret() };
      const malformed = { id: valid.id, secret: 'not-a-token' };
      const miscounted = { id: valid.id, secret: `strata_${'0'.repeat(46)}` };
      for (const token of [null, expired, revoked, unknown, malformed, miscounted]) {
        const answer = await call(operationId, token, path);
        assert.equal(answer.statusCode, 401);
        assert.equal(answer.headers['www-authenticate'], 'Bearer');
        assert.equal(typeof answer.json().detail, 'string');
      }
    });

    if (expected.scope === 'includes-repository') {
      test(`${operationId} answers for another account's repository as for one that does not exist`, async () => {
        for (const grant of GRANTS) {
          const token = await fixture.token(owner, { grants: [grant] });
          const theirs = await call(operationId, token, { username: 'bob', name: 'theirs' });
          const none = await call(operationId, token, { username: 'bob', name: 'nothing' });
          const nobody = await call(operationId, token, { username: 'nobody', name: 'theirs' });
          assert.equal(theirs.statusCode, expected.grants?.includes(grant) === true ? 404 : 403);
          for (const same of [none, nobody]) {
            assert.equal(same.statusCode, theirs.statusCode);
            assert.equal(same.body, theirs.body);
            assert.deepEqual(headerNames(same), headerNames(theirs));
          }
        }
      });
    }
  }

  test('a token without any grant for it may still revoke itself, and nothing else', async () => {
    const token = await fixture.token(owner, { grants: ['GIT_HTTP_READ'] });
    const another = await fixture.token(owner);
    assert.equal((await fixture.request('DELETE', `/v1/access-tokens/${another.id}`, token)).statusCode, 403);
    assert.equal((await fixture.request('GET', `/v1/access-tokens/${token.id}`, token)).statusCode, 403);
    assert.equal(
      (await fixture.request('DELETE', `/v1/access-tokens/${token.id.toUpperCase()}`, token)).statusCode,
      204,
    );
    assert.equal((await fixture.request('GET', '/v1/account/usage', token)).statusCode, 401);
  });

  test("another account's token is not found by any route", async () => {
    const theirs = await fixture.token(stranger);
    const mine = await fixture.token(owner);
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      const answer = await fixture.request(
        method,
        `/v1/access-tokens/${theirs.id}`,
        mine,
        method === 'PUT' ? { body: {} } : {},
      );
      assert.equal(answer.statusCode, 404, method);
      assert.deepEqual(answer.json(), { detail: 'Access token not found' });
    }
    assert.equal((await fixture.request('GET', '/v1/account/usage', theirs)).statusCode, 200);
  });

  test("another account's webhook is not found by any route", async () => {
    const theirs = await fixture.webhook(stranger);
    const delivery = await fixture.delivery(stranger, theirs);
    const mine = await fixture.token(owner);
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PUT', '', { active: false }],
      ['POST', '/secret', undefined],
      ['POST', '/ping', undefined],
      ['GET', '/deliveries', undefined],
      ['POST', `/deliveries/${delivery}/redeliver`, undefined],
      ['DELETE', '', undefined],
    ] as const) {
      const answer = await fixture.request(
        method,
        `/v1/webhooks/${theirs}${path}`,
        mine,
        body === undefined ? {} : { body },
      );
      assert.equal(answer.statusCode, 404, method);
      assert.deepEqual(answer.json(), { detail: 'Webhook not found' });
    }
    assert.equal(
      (await fixture.request('GET', `/v1/webhooks/${theirs}`, await fixture.token(stranger))).statusCode,
      200,
    );
  });

  test('a repository is created only for the account of the token', async () => {
    const token = await fixture.token(stranger);
    const create = (body: object) => fixture.request('POST', '/v1/repositories', token, { body });
    assert.equal((await create({ name: 'mine', username: 'ada' })).statusCode, 422);
    assert.equal((await create({ name: 'mine' })).json().username, 'bob');
  });
});

function headerNames(answer: { readonly headers: object }): readonly string[] {
  return Object.keys(answer.headers).toSorted();
}
