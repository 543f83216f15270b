/** Compares what REST shows of a repository with what git shows: real server, real git, real push. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
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

  const get = (path: string) => api(strata, ada.token, 'GET', `/v1/repos/ada/reads/${path}`);

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
