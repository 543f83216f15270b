/**
 * A real repository through push, clone and REST: what git says of it is what the service says.
 *
 * STRATA_REAL_REPOSITORY names a bundle; nothing of it is copied into the project.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, test } from 'node:test';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  git,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const BUNDLE = process.env['STRATA_REAL_REPOSITORY'] ?? '';
const RANDOM_PATHS = 500;

interface CommitItem {
  readonly hexsha: string;
  readonly message: string;
}

describe('A real repository', { skip: BUNDLE === '' ? 'STRATA_REAL_REPOSITORY is not set' : false }, () => {
  test('pushed and cloned back is identical, and REST says of it what git says', async (context) => {
    const strata = await startStrata(context);
    const ada = await createAccount(strata, 'ada');
    const url = await createRepository(strata, ada, 'real');
    const folder = await tempDir(context);
    await git(folder, ['clone', '--quiet', '--mirror', path.resolve(BUNDLE), 'source.git']);
    const source = path.join(folder, 'source.git');
    // Bundles of hosted repositories may hold refs/pull/ and the like, which are not taken here.
    const refspecs = ['refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*'];
    await git(source, ['push', '--quiet', url, ...refspecs]);

    const refs = ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags'];
    await git(folder, ['clone', '--quiet', '--mirror', url, 'back.git']);
    const back = path.join(folder, 'back.git');
    assert.equal(await git(back, refs), await git(source, refs));
    await git(back, ['fsck', '--full']);

    await compareBranches(strata, ada, source);
    await compareCommits(strata, ada, source);
    await compareContents(strata, ada, source);

    const verified = await admin(strata, ['projections', 'rebuild', '--verify']);
    const { projections } = verified as { projections: { differences: number }[] };
    assert.deepEqual(
      projections.map(({ differences }) => differences),
      projections.map(() => 0),
    );
    const log = (await admin(strata, ['log', 'verify', '--references'])) as { faults: string[] };
    assert.deepEqual(log.faults, []);
  });
});

async function get(strata: Strata, ada: Account, target: string): Promise<unknown> {
  const answer = await api(strata, ada.token, 'GET', `/v1/repos/ada/real${target}`);
  assert.equal(answer.status, 200, `${target}: ${answer.text}`);
  return answer.body;
}

async function compareBranches(strata: Strata, ada: Account, source: string): Promise<void> {
  const { branches } = (await get(strata, ada, '/branches')) as { branches: { name: string; commit: CommitItem }[] };
  const listed = branches.map(({ name, commit }) => `${commit.hexsha} refs/heads/${name}\n`).join('');
  assert.equal(listed, await git(source, ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads']));
}

/** The default branch to its root, and the first page of every branch. */
async function compareCommits(strata: Strata, ada: Account, source: string): Promise<void> {
  const { default_branch: head } = (await get(strata, ada, '/branches')) as { default_branch: string };
  const listed: string[] = [];
  for (let page = 0, more = true; more; page += 1) {
    const body = (await get(strata, ada, `/commits?limit=100&page=${page}`)) as {
      commits: CommitItem[];
      pagination: { has_more: boolean };
    };
    listed.push(...body.commits.map(({ hexsha }) => hexsha));
    more = body.pagination.has_more;
  }
  assert.deepEqual(listed, lines(await git(source, ['rev-list', `refs/heads/${head}`])));
  for (const branch of lines(await git(source, ['for-each-ref', '--format=%(refname:short)', 'refs/heads']))) {
    const target = `/commits?limit=20&ref=${encodeURIComponent(branch)}`;
    const { commits } = (await get(strata, ada, target)) as { commits: CommitItem[] };
    const expected = lines(await git(source, ['rev-list', '--max-count=20', `refs/heads/${branch}`]));
    assert.deepEqual(
      commits.map(({ hexsha }) => hexsha),
      expected,
      branch,
    );
  }
}

async function compareContents(strata: Strata, ada: Account, source: string): Promise<void> {
  const branches = lines(await git(source, ['for-each-ref', '--format=%(refname:short)', 'refs/heads']));
  const paths: { branch: string; path: string; blob: string }[] = [];
  for (const branch of branches) {
    for (const line of lines(await git(source, ['ls-tree', '-r', `refs/heads/${branch}`]))) {
      const [, blob, file] = /^100\d{3} blob ([0-9a-f]{40})\t([^"].*)$/.exec(line) ?? [];
      if (blob !== undefined && file !== undefined) paths.push({ branch, path: file, blob });
    }
  }
  // Every nth: the same paths each time, spread over all branches.
  const step = Math.max(1, Math.floor(paths.length / RANDOM_PATHS));
  for (let at = 0; at < paths.length; at += step) {
    const wanted = paths[at];
    if (wanted === undefined) continue;
    const target = `/contents/${wanted.path.split('/').map(encodeURIComponent).join('/')}?ref=${encodeURIComponent(wanted.branch)}`;
    const file = (await get(strata, ada, target)) as { sha: string; encoding: string; content: string };
    assert.equal(file.sha, wanted.blob, target);
    const bytes = Buffer.from(file.content, file.encoding === 'base64' ? 'base64' : 'utf8');
    const hashed = (await git(source, ['hash-object', '--stdin'], bytes)).trim();
    assert.equal(hashed, wanted.blob, target);
  }
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
