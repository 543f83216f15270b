/** Compares what REST shows of a repository with what git shows: real server, real git, real push. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
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
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

interface CommitObject {
  readonly hexsha: string;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly committed_at: string;
  readonly parents: readonly string[];
}

describe('REST reads of a pushed repository', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let work: string;
  let url: string;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
    url = await createRepository(strata, ada, 'reads');
    work = await newWorkTree(ending);
    await commitFile(work, 'src/deep/main.c', 'int main;\n');
    await git(work, ['checkout', '--quiet', '-b', 'side', 'HEAD~1']);
    await commitFile(work, 'side', 'on the side\n');
    await git(work, ['checkout', '--quiet', 'main']);
    await git(work, ['merge', '--quiet', '--no-ff', '-m', 'Merge side', 'side']);
    await commitFile(work, 'ünïcode name%', 'odd\n');
    await git(work, ['tag', '-a', 'v1', '-m', 'one', 'HEAD~1']);
    await git(work, ['push', '--quiet', url, 'main', 'side', 'v1']);
  });

  const get = (place: string) => api(strata, ada.token, 'GET', `/v1/repos/ada/reads/${place}`);

  async function listed(query: string): Promise<readonly CommitObject[]> {
    const answer = await get(`commits?limit=100${query}`);
    assert.equal(answer.status, 200, answer.text);
    return (answer.body as { readonly commits: readonly CommitObject[] }).commits;
  }

  test('commits are those of git log, in its order, for every kind of ref', async () => {
    for (const ref of ['main', 'side', 'v1', (await git(work, ['rev-parse', 'main~2'])).trim()]) {
      const log = await git(work, ['log', '-z', '--format=%H%x01%P%x01%an%x01%ae%x01%ct%x01%B', ref, '--']);
      const lines = log.split('\0').filter((line) => line !== '');
      const expected = lines.map((line) => {
        const [hexsha = '', parents = '', name = '', email = '', seconds = '', message = ''] = line.split('\u0001');
        return {
          hexsha,
          parents: parents.split(' ').filter((parent) => parent !== ''),
          author: { name, email },
          committed_at: new Date(Number(seconds) * 1_000).toISOString(),
          message,
        };
      });
      const commits = (await listed(`&ref=${ref}`)).map(({ hexsha, parents, author, committed_at, message }) => {
        return { hexsha, parents, author, committed_at, message };
      });
      assert.deepEqual(commits, expected, ref);
      if (ref === 'main') assert.deepEqual(await listed(''), await listed('&ref=main'));
    }
  });

  test('commits of a path are those of git log for it, in pages', async () => {
    for (const changed of ['src', 'src/deep/main.c', 'side', 'ünïcode name%']) {
      const expected = (await git(work, ['log', '--format=%H', 'main', '--', changed])).trim().split('\n');
      const commits = await listed(`&path=${encodeURIComponent(changed)}`);
      assert.deepEqual(
        commits.map(({ hexsha }) => hexsha),
        expected,
        changed,
      );
    }
    const none = await get('commits?path=nowhere');
    assert.deepEqual([none.status, none.body], [404, { detail: 'Path not found' }]);
    const beyond = (await get('commits?path=src&page=5')).body as { readonly pagination: object };
    assert.deepEqual(beyond.pagination, { page: 5, limit: 50, total: null, has_more: false });
  });

  test('a commit shows the files that it changed, as git diff-tree counts them', async () => {
    await git(work, ['checkout', '--quiet', '--force', '-b', 'changes', 'main']);
    await git(work, ['mv', 'src/deep/main.c', 'src/moved.c']);
    await writeFile(path.join(work, 'binary'), Buffer.from([0, 1, 2]));
    await writeFile(path.join(work, 'side'), 'one\ntwo\n');
    await git(work, ['add', '.']);
    await git(work, ['commit', '--quiet', '-m', 'Change much']);
    await git(work, ['push', '--quiet', url, 'changes']);
    const hexsha = (await git(work, ['rev-parse', 'changes'])).trim();
    await git(work, ['checkout', '--quiet', 'main']);
    const answer = await get(`commits/${hexsha}`);
    assert.equal(answer.status, 200, answer.text);
    const { files, files_truncated, message, parents } = answer.body as {
      readonly files: readonly object[];
      readonly files_truncated: boolean;
      readonly message: string;
      readonly parents: readonly string[];
    };
    assert.deepEqual([message, files_truncated, parents.length], ['Change much\n', false, 1]);
    assert.deepEqual(files, [
      { path: 'binary', previous_path: null, status: 'added', additions: null, deletions: null, binary: true },
      { path: 'side', previous_path: null, status: 'modified', additions: 2, deletions: 1, binary: false },
      {
        path: 'src/moved.c',
        previous_path: 'src/deep/main.c',
        status: 'renamed',
        additions: 0,
        deletions: 0,
        binary: false,
      },
    ]);
    for (const id of [hexsha.slice(0, 6), '0'.repeat(12), '0'.repeat(40)])
      assert.equal((await get(`commits/${id}`)).status, 404, id);
    assert.equal((await get(`commits/${hexsha.toUpperCase()}`)).status, 200);
  });

  test('a branch is found by its name, and its archive, also behind a proxy that decodes slashes', async () => {
    await git(work, ['push', '--quiet', url, 'main:refs/heads/feature/one']);
    const answer = await get('branches/feature%2Fone');
    assert.deepEqual(await get('branches/feature/one').then(({ body }) => body), answer.body);
    const archives = await Promise.all(
      ['feature%2Fone', 'feature/one'].map((name) =>
        fetch(`${strata.url}/v1/repos/ada/reads/archive/${name}.tar.gz`, {
          ...{ method: 'HEAD', headers: { authorization: `Bearer ${ada.token}` } },
        }),
      ),
    );
    assert.deepEqual(new Set(archives.map(({ status }) => status)), new Set([200]));
    assert.equal(new Set(archives.map(({ headers }) => headers.get('etag'))).size, 1);
    assert.equal(answer.status, 200, answer.text);
    const { branches } = (await get('branches')).body as { readonly branches: readonly { readonly name: string }[] };
    assert.deepEqual(
      answer.body,
      branches.find(({ name }) => name === 'feature/one'),
    );
    for (const name of ['feature', 'v1', 'refs%2Fheads%2Fmain', 'refs/heads/main', '..', '%00', '', 'feature//one']) {
      assert.equal((await get(`branches/${name}`)).status, 404, name);
    }
    assert.equal((await get('branches/feature%252Fone')).status, 404, 'no name is decoded twice');
  });

  test('tags are listed in byte order, annotated and light ones, with the commit they lead to', async () => {
    await git(work, ['tag', 'light', 'main']);
    await git(work, ['tag', '-a', 'of-a-tree', '-m', 'a tree', 'main^{tree}']);
    await git(work, ['push', '--quiet', url, 'light', 'of-a-tree']);
    const answer = await get('tags');
    assert.equal(answer.status, 200, answer.text);
    const { tags, pagination } = answer.body as {
      readonly tags: readonly { readonly name: string; readonly commit: CommitObject | null }[];
      readonly pagination: object;
    };
    const shown = tags.map(({ commit, ...tag }) => ({ ...tag, commit: commit?.hexsha ?? null }));
    const at = async (name: string) => (await git(work, ['rev-parse', name])).trim();
    const [light, v1, tree] = [await at('light'), await at('v1^{commit}'), await at('of-a-tree^{tree}')];
    const tagger = { name: 'C O Mitter', email: 'committer@example.org' };
    const [commit, annotated] = [{ type: 'commit' }, { annotated: true, tagger }];
    assert.deepEqual(shown, [
      { ...commit, name: 'light', target: light, annotated: false, message: null, tagger: null, commit: light },
      { ...annotated, name: 'of-a-tree', target: tree, type: 'tree', message: 'a tree\n', commit: null },
      { ...commit, ...annotated, name: 'v1', target: v1, message: 'one\n', commit: v1 },
    ]);
    assert.deepEqual(pagination, { page: 0, limit: 50, total: 3, has_more: false });
    const second = (await get('tags?limit=1&page=1')).body as { readonly tags: readonly { readonly name: string }[] };
    assert.deepEqual(
      second.tags.map(({ name }) => name),
      ['of-a-tree'],
    );
  });

  test('an archive holds the files of a commit, as git archive does', async () => {
    const folder = await tempDir(ending);
    await git(work, ['checkout', '--quiet', '--force', '-b', 'release/1.0', 'main']);
    await writeFile(path.join(work, '.gitattributes'), 'secret export-ignore\nversion export-subst\n');
    await writeFile(path.join(work, 'secret'), 'not in archives\n');
    await writeFile(path.join(work, 'version'), '$Format:%H %GG%G?$\n');
    await git(work, ['add', '.gitattributes', 'secret', 'version']);
    await git(work, ['commit', '--quiet', '-m', 'Release']);
    const hexsha = (await git(work, ['rev-parse', 'HEAD'])).trim();
    await git(work, ['push', '--quiet', url, 'release/1.0']);
    const download = async (name: string) => {
      const headers = { authorization: `Bearer ${ada.token}` };
      return fetch(`${strata.url}/v1/repos/ada/reads/archive/${name}`, { headers });
    };
    const answer = await download('release%2F1.0.tar.gz');
    assert.deepEqual(
      [answer.status, answer.headers.get('content-type'), answer.headers.get('content-disposition')],
      [200, 'application/octet-stream', 'attachment; filename="reads-release-1.0.tar.gz"'],
    );
    await writeFile(path.join(folder, 'a.tar.gz'), Buffer.from(await answer.arrayBuffer()));
    await promisify(execFile)('tar', ['-xzf', 'a.tar.gz'], { cwd: folder });
    const unpacked = path.join(folder, 'reads-release-1.0');
    assert.equal(await readFile(path.join(unpacked, 'src/deep/main.c'), 'utf8'), 'int main;\n');
    assert.match(await readFile(path.join(unpacked, 'version'), 'utf8'), new RegExp(`^${hexsha} N?$`, 'm'));
    await assert.rejects(readFile(path.join(unpacked, 'secret')), { code: 'ENOENT' });
    const zip = await download(`${hexsha}.zip`);
    assert.equal(zip.headers.get('content-disposition'), `attachment; filename="reads-${hexsha}.zip"`);
    assert.equal(
      Buffer.from(await zip.arrayBuffer())
        .subarray(0, 4)
        .toString('latin1'),
      'PK\u0003\u0004',
    );
    const statuses = await Promise.all(
      ['nowhere.zip', 'main.rar', 'main'].map(async (name) => (await download(name)).status),
    );
    assert.deepEqual(statuses, [404, 422, 422]);
    const known = { authorization: `Bearer ${ada.token}`, 'if-none-match': answer.headers.get('etag') ?? '' };
    const again = await fetch(`${strata.url}/v1/repos/ada/reads/archive/release%2F1.0.tar.gz`, { headers: known });
    assert.equal(again.status, 304);
    await git(work, ['checkout', '--quiet', '--force', 'main']);
  });

  test('folders are those of git ls-tree, and files are those of git cat-file', async () => {
    const tree = await git(work, ['ls-tree', '-r', '-t', '-l', '-z', 'main']);
    for (const line of tree.split('\0').filter((entry) => entry !== '')) {
      const [, mode = '', type = '', sha = '', size = '', path = ''] =
        /^(\d+) (\w+) ([0-9a-f]+) +(\S+)\t(.*)$/s.exec(line) ?? [];
      const answer = await get(`contents/${encodeURIComponent(path)}`);
      assert.equal(answer.status, 200, path);
      if (type === 'tree') {
        const folder = answer.body as { readonly type: string; readonly entries: readonly { readonly name: string }[] };
        assert.equal(folder.type, 'dir');
        const names = (await git(work, ['ls-tree', '-z', '--name-only', `main:${path}`])).split('\0').slice(0, -1);
        assert.deepEqual(
          folder.entries.map(({ name }) => name),
          names,
        );
        continue;
      }
      const { content, ...file } = answer.body as { readonly content: string } & Readonly<Record<string, unknown>>;
      assert.deepEqual([file['mode'], file['sha'], String(file['size']), file['path']], [mode, sha, size, path]);
      assert.equal(content, await git(work, ['cat-file', 'blob', sha]));
    }
  });

  test('a large binary file is returned byte for byte, whole and in parts', async () => {
    const bytes = randomBytes(5 * 1024 * 1024);
    const sha = await git(work, ['hash-object', '-w', '--stdin'], bytes);
    await git(work, ['update-index', '--add', '--cacheinfo', `100644,${sha.trim()},large.bin`]);
    await git(work, ['commit', '--quiet', '-m', 'Large']);
    await git(work, ['push', '--quiet', url, 'main']);
    const target = `${strata.url}/v1/repos/ada/reads/contents/large.bin`;
    const headers = { authorization: `Bearer ${ada.token}` };
    const whole = await fetch(`${target}?raw=true`, { headers });
    assert.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes));
    const part = await fetch(`${target}?raw=true`, { headers: { ...headers, range: 'bytes=4000000-4000099' } });
    assert.equal(part.status, 206);
    assert.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(4_000_000, 4_000_100)));
    const json = (await (await fetch(target, { headers })).json()) as { readonly content: string };
    assert.ok(Buffer.from(json.content, 'base64').equals(bytes));
    const usage = await api(strata, ada.token, 'GET', '/v1/account/usage');
    const { transfer_bytes: transfer } = usage.body as { readonly transfer_bytes: { readonly used: number } };
    assert.ok(transfer.used > 2 * bytes.length + 100, 'every byte sent counts as transfer');
  });

  test('a commit of a deleted branch cannot be read, unless another ref reaches it', async () => {
    const lost = (await git(work, ['commit-tree', '-p', 'main', '-m', 'Lost', 'main^{tree}'])).trim();
    await git(work, ['push', '--quiet', url, `${lost}:refs/heads/short`, `${lost}:refs/heads/long`]);
    assert.equal((await get(`commits?ref=${lost}`)).status, 200);
    await git(work, ['push', '--quiet', url, ':refs/heads/short']);
    assert.equal((await get(`contents?ref=${lost}`)).status, 200);
    await git(work, ['push', '--quiet', url, ':refs/heads/long']);
    assert.equal((await get(`commits?ref=${lost}`)).status, 404);
    assert.equal((await get(`contents?ref=${lost}`)).status, 404);
  });
});
