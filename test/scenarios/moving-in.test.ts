/** Repositories of other hosts move in with `git push --mirror`: whole, at the first try, and without growing. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const PULLS = 1_000;
const WHO = 'A U Thor <author@example.org> 1500000000 +0000';
const REFS = ['for-each-ref', '--format=%(objectname) %(refname)'];

describe('A clone of a repository of another host', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
  });

  const get = async (place: string): Promise<Record<string, unknown>> => {
    const answer = await api(strata, ada.token, 'GET', `/v1/repos/ada/${place}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.body as Record<string, unknown>;
  };

  /** Writes an object without git's checks, and returns its id. */
  const write = async (work: string, type: string, bytes: string | Uint8Array): Promise<string> =>
    (await git(work, ['hash-object', '-t', type, '-w', '--stdin', '--literally'], bytes)).trim();

  /** A history with links named .gitignore, odd modes and bad identity lines. Returns its last commit. */
  const oddHistory = async (work: string): Promise<string> => {
    const link = await write(work, 'blob', 'shared/ignore');
    const entry = (mode: string, name: string, id: string) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]);
    const tree = await write(
      work,
      'tree',
      Buffer.concat([entry('120000', '.gitignore', link), entry('000000', 'odd', 'ab'.repeat(20))]),
    );
    let tip = '';
    for (const odd of [
      'A<a@example.org> 1 +0000',
      '<a@example.org> 1 +0000',
      'A > B <a@x> 1 +0000',
      'A <a@x> 01 +0000',
    ]) {
      const parent = tip === '' ? '' : `parent ${tip}\n`;
      tip = await write(work, 'commit', `tree ${tree}\n${parent}author ${odd}\ncommitter ${WHO}\n\nold\n`);
    }
    return tip;
  };

  test('is mirrored whole, is cloned back identically, and takes no more room after ten mirrored changes', async (context) => {
    const url = await createRepository(strata, ada, 'moved');
    const work = await newWorkTree(context);
    const old = await oddHistory(work);
    await commitFile(work, 'noise', randomBytes(2_000_000).toString('latin1'));
    await git(work, ['branch', '-m', 'develop']);
    await git(work, ['merge', '--quiet', '--allow-unrelated-histories', '-s', 'ours', '-m', 'Join', old]);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const refs = [`create refs/heads/a-release ${old}`, `create refs/reviewable/pr1/r1 ${old}`];
    refs.push(`create refs/remotes/origin/develop ${head}`, `create refs/notes/commits ${head}`);
    const pulls = Array.from({ length: PULLS }, (_, n) => {
      return `commit refs/pull/${n + 1}/head\ncommitter ${WHO}\n${data(`Pull ${n + 1}`)}\nfrom ${head}\n\n`;
    });
    await git(work, ['fast-import', '--quiet'], pulls.join(''));
    await git(work, ['update-ref', '--stdin'], `${refs.join('\n')}\n`);

    const first = await tryGit(work, ['push', '--mirror', url]);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /remote: The default branch is now develop, .*\nremote: Change it .*--default-branch/);
    for (let change = 0; change < 10; change += 1) {
      await commitFile(work, `change-${change}`, `${change}\n`);
      const pushed = await tryGit(work, ['push', '--mirror', url]);
      assert.equal(pushed.code, 0, pushed.stderr);
      assert.doesNotMatch(pushed.stderr, /default branch/);
    }

    const folder = await tempDir(context);
    await git(folder, ['clone', '--quiet', '--mirror', url, 'mirror.git']);
    assert.equal(await git(path.join(folder, 'mirror.git'), REFS), await git(work, REFS));
    await git(path.join(folder, 'mirror.git'), ['repack', '-a', '-d', '-q']);
    const { size_bytes } = await get('moved');
    const repacked = await bytesBelow(path.join(folder, 'mirror.git/objects/pack'));
    assert.ok(Number(size_bytes) < repacked * 1.05, `${String(size_bytes)} bytes, ${repacked} after one repack`);
    await git(folder, ['clone', '--quiet', url, 'plain']);
    const plain = await git(path.join(folder, 'plain'), [...REFS, 'refs/remotes']);
    assert.doesNotMatch(plain, /pull|reviewable|notes/);
    assert.equal((await git(path.join(folder, 'plain'), ['branch', '--show-current'])).trim(), 'develop');

    const { branches } = await get('moved/branches');
    assert.deepEqual(
      (branches as readonly { readonly name: string }[]).map(({ name }) => name),
      ['a-release', 'develop'],
    );
    const { entries } = await get(`moved/contents?ref=a-release`);
    assert.deepEqual(
      (entries as readonly { readonly name: string; readonly type: string }[]).map(({ name, type }) => [name, type]),
      [
        ['.gitignore', 'symlink'],
        ['odd', 'submodule'],
      ],
    );
    const odd = await get(`moved/contents/odd?ref=a-release`);
    assert.deepEqual([odd['type'], odd['mode'], odd['sha']], ['submodule', '160000', 'ab'.repeat(20)]);
  });

  test('that endangers clients is refused, and git shows the object, where it is and what to do', async (context) => {
    const url = await createRepository(strata, ada, 'hostile');
    const work = await newWorkTree(context);
    const blob = await write(work, 'blob', 'x');
    const entry = (mode: string, name: string, id: string) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(id, 'hex')]);
    const bad = await write(work, 'tree', entry('100644', '.git', blob));
    const root = await write(work, 'tree', entry('40000', 'lib', bad));
    const commit = await write(work, 'commit', `tree ${root}\nauthor ${WHO}\ncommitter ${WHO}\n\nx\n`);
    const { code, stderr } = await tryGit(work, ['push', url, `${commit}:refs/heads/bad`]);
    assert.notEqual(code, 0);
    assert.match(stderr, new RegExp(`remote: object ${bad}: hasDotgit: .* \\(a tree: lib in commit ${commit}\\)`));
    assert.match(stderr, /remote: Rewrite the history without this object .*ask the operator/);
  });

  test('that is refused in part stores nothing of what was refused, however often it is pushed', async (context) => {
    const url = await createRepository(strata, ada, 'partly');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const noise = await git(work, ['hash-object', '-w', '--stdin'], randomBytes(500_000));
    const folder = await git(work, ['mktree'], `100644 blob ${noise.trim()}\tnoise\n`);
    const left = (await git(work, ['commit-tree', '-m', 'left out', folder.trim()])).trim();
    await git(work, ['update-ref', 'refs/strata/own', left]);
    for (let change = 0; change < 3; change += 1) {
      await commitFile(work, `change-${change}`, `${change}\n`);
      const pushed = await tryGit(work, ['push', '--mirror', url]);
      assert.notEqual(pushed.code, 0);
      assert.match(pushed.stderr, /refs\/strata\/own \(refs\/strata\/ is reserved\)/);
    }
    const { size_bytes } = await get('partly');
    assert.ok(Number(size_bytes) < 100_000, `${String(size_bytes)} bytes`);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', url, 'copy']);
    assert.equal(await git(path.join(clones, 'copy'), ['rev-parse', 'HEAD']), await git(work, ['rev-parse', 'HEAD']));
  });
});

async function bytesBelow(folder: string): Promise<number> {
  const sizes = await Promise.all(
    (await readdir(folder)).map(async (name) => (await stat(path.join(folder, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A `data` command of git-fast-import(1). */
function data(text: string): string {
  return `data ${text.length}\n${text}`;
}
