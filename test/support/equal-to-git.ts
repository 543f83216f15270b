/**
 * Compares a repository as the service shows it with a bare copy that git reads: branches, commits, files and a clone.
 * Also compares the read models with the log they were built from, and the log with its layers.
 */
import assert from 'node:assert/strict';
import path from 'node:path';
import { type Account, admin, api, git, gitUrl, type Strata } from './strata.ts';

const RANDOM_PATHS = 500;
// Hosted repositories keep other refs below refs/pull/ and the like; these are not compared.
const REFS = ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads', 'refs/tags'];

interface CommitItem {
  readonly hexsha: string;
  readonly message: string;
}

/** Returns the body of a REST answer; the target is a path below the repository. */
type Get = (target: string) => Promise<unknown>;

/**
 * Fails when the service's answers differ from what git reads in the bare repository `source`. Clones into `folder`.
 */
export async function assertEqualToGit(
  strata: Strata,
  account: Account,
  name: string,
  source: string,
  folder: string,
): Promise<void> {
  const get: Get = async (target) => {
    const answer = await api(strata, account.token, 'GET', `/v1/repos/${account.username}/${name}${target}`);
    assert.equal(answer.status, 200, `${target}: ${answer.text}`);
    return answer.body;
  };
  const clone = `${name}-back.git`;
  await git(folder, ['clone', '--quiet', '--mirror', gitUrl(strata, account, name), clone]);
  const back = path.join(folder, clone);
  assert.equal(await git(back, REFS), await git(source, REFS));
  await git(back, ['fsck', '--full']);
  await compareBranches(get, source);
  await compareCommits(get, source);
  await compareContents(get, source);
}

/** Fails when a read model differs from one rebuilt from the log, or when an event names a layer that is not stored. */
export async function assertRebuildable(strata: Strata): Promise<void> {
  const verified = await admin(strata, ['projections', 'rebuild', '--verify']);
  const { projections } = verified as { projections: { differences: number }[] };
  assert.deepEqual(
    projections.map(({ differences }) => differences),
    projections.map(() => 0),
  );
  const log = (await admin(strata, ['log', 'verify', '--references'])) as { faults: string[] };
  assert.deepEqual(log.faults, []);
}

async function compareBranches(get: Get, source: string): Promise<void> {
  const { branches } = (await get('/branches')) as { branches: { name: string; commit: CommitItem }[] };
  const listed = branches.map(({ name, commit }) => `${commit.hexsha} refs/heads/${name}\n`).join('');
  assert.equal(listed, await git(source, ['for-each-ref', '--format=%(objectname) %(refname)', 'refs/heads']));
}

interface CommitPage {
  readonly branch: string;
  readonly commits: readonly CommitItem[];
  readonly pagination: { readonly has_more: boolean };
}

/** Compares the whole history of the default branch, by both ways of answering, and the first page of every branch. */
async function compareCommits(get: Get, source: string): Promise<void> {
  const { default_branch: head } = (await get('/branches')) as { default_branch: string };
  const order = lines(await git(source, ['rev-list', `refs/heads/${head}`]));
  const listed: string[] = [];
  for (let page = 0, more = true; more; page += 1) {
    const model = (await get(`/commits?limit=100&page=${page}`)) as CommitPage;
    // For the id of a commit, the objects answer.
    const walk = (await get(`/commits?limit=100&page=${page}&ref=${order[0]}`)) as CommitPage;
    assert.deepEqual({ ...walk, branch: head }, model, `page ${page}`);
    listed.push(...model.commits.map(({ hexsha }) => hexsha));
    more = model.pagination.has_more;
  }
  assert.deepEqual(listed, order);
  for (const branch of lines(await git(source, ['for-each-ref', '--format=%(refname:short)', 'refs/heads']))) {
    const target = `/commits?limit=20&ref=${encodeURIComponent(branch)}`;
    const { commits } = (await get(target)) as { commits: CommitItem[] };
    const expected = lines(await git(source, ['rev-list', '--max-count=20', `refs/heads/${branch}`]));
    assert.deepEqual(
      commits.map(({ hexsha }) => hexsha),
      expected,
      branch,
    );
  }
}

async function compareContents(get: Get, source: string): Promise<void> {
  const branches = lines(await git(source, ['for-each-ref', '--format=%(refname:short)', 'refs/heads']));
  const paths: { branch: string; path: string; blob: string }[] = [];
  for (const branch of branches) {
    for (const line of lines(await git(source, ['ls-tree', '-r', `refs/heads/${branch}`]))) {
      const [, blob, file] = /^100\d{3} blob ([0-9a-f]{40})\t([^"].*)$/.exec(line) ?? [];
      if (blob !== undefined && file !== undefined) paths.push({ branch, path: file, blob });
    }
  }
  // Every nth path: the same paths in each run, spread over all branches.
  const step = Math.max(1, Math.floor(paths.length / RANDOM_PATHS));
  for (let at = 0; at < paths.length; at += step) {
    const wanted = paths[at];
    if (wanted === undefined) continue;
    const target = `/contents/${wanted.path.split('/').map(encodeURIComponent).join('/')}?ref=${encodeURIComponent(wanted.branch)}`;
    const file = (await get(target)) as { sha: string; encoding: string; content: string };
    assert.equal(file.sha, wanted.blob, target);
    const bytes = Buffer.from(file.content, file.encoding === 'base64' ? 'base64' : 'utf8');
    const hashed = (await git(source, ['hash-object', '--stdin'], bytes)).trim();
    assert.equal(hashed, wanted.blob, target);
  }
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
