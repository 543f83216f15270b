/** Permissions over Git: every route in a matrix of grants and scopes. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { GIT_ROUTES, type GitRoute, PAST_GIT_ROUTES } from '../../../apps/git-http/routes.ts';
import { timeInUrl } from '../../../core/audit/moment.ts';
import { GRANTS, type Grant } from '../../../core/kernel/grants.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { type GitAnswer, type GitFixture, startGit } from '../../support/git-fixture.ts';

/** Written from docs/interface.md, Grants, not from the routes. */
const FETCH: readonly Grant[] = ['ALL', 'GIT_HTTP_READ', 'GIT_HTTP_WRITE'];
const PUSH: readonly Grant[] = ['ALL', 'GIT_HTTP_WRITE'];
const EXPECTED: Readonly<Record<string, readonly Grant[]>> = {
  'GET info/refs git-upload-pack': FETCH,
  'GET info/refs git-receive-pack': PUSH,
  'POST git-upload-pack git-upload-pack': FETCH,
  'POST git-receive-pack git-receive-pack': PUSH,
};

const nameOf = ({ method, path, service }: GitRoute): string => `${method} ${path} ${service}`;

describe('permissions of every Git route', () => {
  let fixture: ApiFixture;
  let git: GitFixture;
  let owner: AccountId;
  let repository: FoundRepository;
  let other: FoundRepository;

  beforeAll(async () => {
    fixture = await createApiFixture();
    owner = await fixture.account('ada');
    repository = await fixture.repository(owner, 'engine');
    other = await fixture.repository(owner, 'other');
    await fixture.repository(await fixture.account('bob'), 'theirs');
    git = await startGit(fixture);
  });
  afterAll(async () => {
    await git.close();
    await fixture.close();
  });

  function call(route: GitRoute, token: TestToken | null, place = 'ada/engine.git', above = '/r'): Promise<GitAnswer> {
    const query = route.serviceInQuery ? `?service=${route.service}` : '';
    // The probe that git sends before a long body: the server answers it after admission.
    const probe = { body: Buffer.from('0000'), headers: { 'content-type': route.contentType ?? '' } };
    return git.request(
      route.method,
      `${above}/${place}/${route.path}${query}`,
      token,
      route.method === 'POST' ? probe : {},
    );
  }

  test('the table here covers every route', () => {
    assert.deepEqual(GIT_ROUTES.map(nameOf).toSorted(), Object.keys(EXPECTED).toSorted());
  });

  for (const route of GIT_ROUTES) {
    const grants = EXPECTED[nameOf(route)] ?? [];

    test(`${nameOf(route)} takes exactly the grants and scopes of the contract`, async () => {
      for (const grant of GRANTS) {
        for (const scope of ['ALL_REPO', 'including', 'excluding'] as const) {
          const ids = [scope === 'including' ? repository.id : other.id];
          const selected = scope === 'ALL_REPO' ? {} : ({ scope: 'SELECTED_REPO', repositoryIds: ids } as const);
          const token = await fixture.token(owner, { grants: [grant], ...selected });
          const answer = await call(route, token);
          const atPage = await call(route, token, 'ada/engine', '');
          assert.deepEqual([atPage.status, atPage.text], [answer.status, answer.text], 'the same below the page');
          const what = `${grant} and ${scope}: ${answer.text}`;
          if (scope === 'excluding') {
            // Visibility is checked before the grant: the answer reveals nothing about an invisible repository.
            assert.deepEqual([answer.status, answer.text], [404, 'Repository not found\n'], what);
          } else if (grants.includes(grant)) {
            assert.equal(answer.status, 200, what);
          } else {
            assert.equal(answer.status, 403, what);
            assert.match(answer.text, /^This token lacks the grant GIT_HTTP_(READ|WRITE)\n$/, what);
          }
        }
      }
    });

    test(`${nameOf(route)} refuses a missing or invalid token with 401`, async () => {
      const valid = await fixture.token(owner);
      const revoked = await fixture.token(owner);
      await fixture.request('DELETE', `/v1/access-tokens/${revoked.id}`, valid);
      const unknown = { id: valid.id, secret: newTokenSecret() };
      const malformed = { id: valid.id, secret: 'not-a-token' };
      const miscounted = { id: valid.id, secret: `strata_${'0'.repeat(46)}` };
      for (const token of [null, revoked, unknown, malformed, miscounted]) {
        for (const answer of [await call(route, token), await call(route, token, 'ada/engine', '')]) {
          assert.equal(answer.status, 401);
          assert.equal(answer.headers.get('www-authenticate'), 'Basic realm="Strata"');
        }
      }
    });

    test(`${nameOf(route)} answers for another account's repository as for one that does not exist`, async () => {
      for (const grant of GRANTS) {
        const token = await fixture.token(owner, { grants: [grant] });
        const none = await call(route, token, 'ada/nothing.git');
        assert.equal(none.status, 404);
        for (const place of ['bob/theirs.git', 'bob/nothing.git', 'nobody/theirs.git']) {
          const answer = await call(route, token, place);
          assert.deepEqual([answer.status, answer.text], [none.status, none.text], place);
          assert.deepEqual([...answer.headers.keys()].toSorted(), [...none.headers.keys()].toSorted(), place);
        }
      }
    });

    test(`${nameOf(route)} answers only its own method`, async () => {
      const token = await fixture.token(owner);
      const wrong = { ...route, method: route.method === 'GET' ? 'POST' : 'GET' } as const;
      const answer = await call(wrong, token);
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, route.method]);
      assert.equal((await call(wrong, null)).status, 401);
    });
  }

  for (const route of PAST_GIT_ROUTES) {
    test(`${nameOf(route)} as of a moment takes the grant ALL on all repositories, and no push`, async () => {
      const now = fixture.clock.now();
      const moment = timeInUrl(now);
      for (const grant of GRANTS) {
        for (const scope of ['ALL_REPO', 'including', 'excluding'] as const) {
          const ids = [scope === 'including' ? repository.id : other.id];
          const selected = scope === 'ALL_REPO' ? {} : ({ scope: 'SELECTED_REPO', repositoryIds: ids } as const);
          const token = await fixture.token(owner, { grants: [grant], ...selected });
          const { status, text } = await call(route, token, `ada/engine@${moment}.git`);
          const what = `${grant} and ${scope}: ${text}`;
          if (scope === 'excluding') {
            assert.deepEqual([status, text], [404, 'Repository not found\n'], what);
          } else if (grant !== 'ALL') {
            assert.deepEqual([status, text], [403, 'This token lacks the grant ALL\n'], what);
          } else if (scope === 'including') {
            assert.deepEqual([status, text], [403, 'This token lacks the scope ALL_REPO\n'], what);
          } else if (route.service === 'git-receive-pack') {
            assert.equal(status, 403, what);
            assert.match(text, /read only: push to ada\/engine\.git without the moment/);
          } else {
            assert.equal(status, 200, what);
          }
        }
      }
    });

    test(`${nameOf(route)} as of a moment tells a stranger nothing`, async () => {
      const token = await fixture.token(owner);
      const none = await call(route, token, 'ada/nothing.git');
      for (const place of [
        'bob/theirs@20261103T140200Z.git',
        'bob/theirs@never.git',
        'bob/none@20261103T140200Z.git',
      ]) {
        const answer = await call(route, token, place);
        assert.deepEqual([answer.status, answer.text], [none.status, none.text], place);
        assert.equal((await call(route, null, place)).status, 401);
      }
    });
  }

  test('the token of a request is recorded as used, and as the actor', async () => {
    const token = await fixture.token(owner, { grants: ['GIT_HTTP_READ'] });
    const [route] = GIT_ROUTES;
    assert.ok(route !== undefined);
    await call(route, token);
    assert.ok((await fixture.context.lastUse.lastUsedAt([token.id])).has(token.id));
    assert.deepEqual(git.finished.at(-1)?.actor, { kind: 'token', id: token.id });
  });
});
