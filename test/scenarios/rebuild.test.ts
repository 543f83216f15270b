/** Everything except the log, the layers and the vault can be built again from them. */
import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { describe, test } from 'vitest';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  createToken,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';

const COMMITS = 60;

describe('A service that lost everything it can rebuild', () => {
  test('answers every read as before, without its read models, snapshots and caches', async (context) => {
    const shared = await sharedParts(context);
    const strata = await startNode(context, shared);
    const ada = await createAccount(strata, 'ada');
    await fill(strata, ada, context);
    const before = await everyRead(strata, ada);

    assert.equal(await strata.stop(), 0);
    const database = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
    await database.connect();
    await database.query('DROP SCHEMA read_models CASCADE');
    await database.query('TRUNCATE snapshots');
    await database.end();
    await rm(path.join(strata.dataDir, 'cache'), { recursive: true, force: true });
    const again = await strata.restart();

    assert.deepEqual(await everyRead(again, ada), before);
    const { projections } = (await admin(again, ['projections', 'rebuild', '--verify'])) as {
      projections: { model: string; differences: number }[];
    };
    for (const { model, differences } of projections) assert.equal(differences, 0, model);
    await admin(again, ['projections', 'rebuild']);
    assert.deepEqual(await everyRead(again, ada), before);
  });
});

/** Makes an example of everything that reads show. */
async function fill(strata: Strata, ada: Account, context: Parameters<typeof newWorkTree>[0]): Promise<void> {
  const work = await newWorkTree(context);
  const url = await createRepository(strata, ada, 'kept');
  for (let n = 0; n < COMMITS; n += 1) await commitFile(work, `folder/file-${n % 7}`, `content ${n}\n`);
  await git(work, ['branch', 'old', 'HEAD~20']);
  await git(work, ['branch', 'gone', 'HEAD~10']);
  await git(work, ['tag', '-a', '-m', 'First', 'v1', 'HEAD~30']);
  await git(work, ['push', '--quiet', url, 'main', 'old', 'gone', 'v1']);
  await git(work, ['push', '--quiet', url, ':gone']);
  await git(work, ['checkout', '--quiet', '-b', 'side', 'HEAD~5']);
  await commitFile(work, 'side', 'side\n');
  await git(work, ['checkout', '--quiet', 'main']);
  await git(work, ['merge', '--quiet', '--no-edit', 'side']);
  await git(work, ['push', '--quiet', url, 'main', 'side']);
  await git(work, ['push', '--quiet', '--force', url, 'main~3:refs/heads/old']);
  await createRepository(strata, ada, 'empty');
  await createRepository(strata, ada, 'deleted');
  for (const [method, target, body] of [
    ['DELETE', '/v1/repos/ada/deleted', undefined],
    ['PATCH', '/v1/repos/ada/kept', { description: 'Kept', default_branch: 'side' }],
  ] as const) {
    const answer = await api(strata, ada.token, method, target, body);
    assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${answer.text}`);
  }
  const extra = await createToken(strata, 'ada', ['--grants', 'API_REPOS_READ']);
  await createToken(strata, 'ada', ['--grants', 'GIT_HTTP_READ']);
  assert.equal((await api(strata, ada.token, 'DELETE', `/v1/access-tokens/${extra.id}`)).status, 204);
}

/**
 * Returns the answers by target. A rebuild may lose only the times when tokens were last used; the transfer figure is
 * left out too, since these reads change it.
 */
async function everyRead(strata: Strata, ada: Account): Promise<Readonly<Record<string, string>>> {
  const kept = '/v1/repos/ada/kept';
  const targets = [
    '/v1/repositories',
    '/v1/repositories?page=1&limit=1',
    '/v1/access-tokens',
    '/v1/account/usage',
    ...[kept, '/v1/repos/ada/empty', '/v1/repos/ada/deleted', '/v1/repos/ada/empty/branches'],
    ...[`${kept}/branches`, `${kept}/commits`, `${kept}/commits?page=1`, `${kept}/commits?limit=7&page=3`],
    ...[`${kept}/commits?ref=old`, `${kept}/commits?ref=v1&page=1`, `${kept}/commits?ref=main`],
    ...[
      `${kept}/contents`,
      `${kept}/contents/folder?ref=old`,
      `${kept}/contents/side`,
      `${kept}/contents/folder/file-3`,
    ],
  ];
  const answers: Record<string, string> = {};
  for (const target of targets) {
    const { status, text } = await api(strata, ada.token, 'GET', target);
    answers[target] = `${status} ${text.replaceAll(/("last_used_at":|"transfer_bytes":\{"used":)[^,}]*/g, '$1')}`;
  }
  answers['ls-remote'] = await git('/', [
    'ls-remote',
    `${strata.url.replace('//', `//ada:${ada.token}@`)}/r/ada/kept.git`,
  ]);
  return answers;
}
