/** Commits that are written over REST on two real servers, as the real git sees them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { beforeAll, describe, type TestContext, test } from 'vitest';
import {
  AUTHOR_TEXT_LENGTH_MAX,
  COMMIT_CHANGES_MAX,
  NEW_MESSAGE_BYTES_MAX,
} from '../../apps/api/schemas/new-commits.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { leftovers } from '../support/leftovers.ts';
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

const ZERO = '0'.repeat(40);

interface Written {
  readonly commit: { readonly hexsha: string; readonly message: string; readonly parents: readonly string[] };
  readonly ref: string;
  readonly before: string;
  readonly after: string;
  readonly event_id: string | null;
}

interface Tried {
  readonly ref: string;
  readonly before: string;
  readonly tree: string;
  readonly files: readonly object[];
  readonly files_truncated: boolean;
}

interface Refused {
  readonly detail: string | readonly { readonly loc: readonly (string | number)[]; readonly type: string }[];
  readonly code?: string;
  readonly head?: string;
  readonly index?: number;
  readonly path?: string;
  readonly blob?: string;
}

describe('A commit over REST', () => {
  const ending = suiteEnding();
  let nodes: readonly [Strata, Strata];
  let ada: Account;
  let names = 0;

  beforeAll(async () => {
    const shared = await sharedParts(ending);
    nodes = await Promise.all([startNode(ending, shared), startNode(ending, shared)]);
    ada = await createAccount(nodes[0], 'ada');
  });

  /** An empty repository, and one with a commit on `main`. */
  async function empty() {
    const name = `repository-${++names}`;
    const url = await createRepository(nodes[0], ada, name);
    const send = (body: object, node = nodes[1]) =>
      api(node, ada.token, 'POST', `/v1/repos/ada/${name}/commits`, {
        ...{ branch: 'main', expected: 'any', message: 'A change', changes: [] },
        ...body,
      });
    const written = async (body: object): Promise<Written> => {
      const answer = await send(body);
      assert.equal(answer.status, 201, answer.text);
      return answer.body as Written;
    };
    const refused = async (body: object, status: number): Promise<Refused> => {
      const answer = await send(body);
      assert.equal(answer.status, status, answer.text);
      return answer.body as Refused;
    };
    return { name, url, send, written, refused };
  }

  async function pushed(context: TestContext) {
    const begun = await empty();
    const work = await newWorkTree(context);
    const head = await commitFile(work, 'src/main.c', 'main\n');
    await git(work, ['push', '--quiet', begun.url, 'main']);
    const blob = (await git(work, ['rev-parse', 'HEAD:src/main.c'])).trim();
    return { ...begun, work, head, blob };
  }

  /** Returns the folder of a bare clone that git has checked. */
  async function cloned(context: TestContext, url: string): Promise<string> {
    const folder = path.join(await tempDir(context), 'clone.git');
    await git(path.dirname(folder), ['clone', '--quiet', '--mirror', url, folder]);
    await git(folder, ['fsck', '--full', '--strict']);
    return folder;
  }

  const put = (file: string, content: string) => ({ action: 'put', path: file, content });

  test('writes, deletes and moves files, and a clone has what git would have made', async (context) => {
    const { name, url, work, head, written } = await pushed(context);
    const result = await written({
      expected: head,
      message: 'Change\n\nwith a body',
      author: { name: ' Grace H.,', email: 'grace@example.org', date: '2026-11-21T10:00:00-03:30' },
      changes: [
        put('docs/ä.md', 'ä\r\n'),
        { action: 'put', path: 'run', mode: '100755', content_base64: Buffer.from([0, 1, 255]).toString('base64') },
        { action: 'put', path_base64: Buffer.from([0x66, 0xff]).toString('base64'), content: '' },
        { action: 'move', path: 'src', to: 'lib' },
        { action: 'delete', path: 'README' },
      ],
    });
    assert.deepEqual([result.ref, result.before, result.after], ['refs/heads/main', head, result.commit.hexsha]);
    assert.deepEqual([result.commit.message, result.commit.parents], ['Change\n\nwith a body\n', [head]]);
    const listed = await api(nodes[0], ada.token, 'GET', `/v1/repos/ada/${name}/commits`);
    assert.deepEqual((listed.body as { readonly commits: readonly object[] }).commits[0], result.commit);
    const clone = await cloned(context, url);
    const shown = await git(clone, ['log', '-1', '--format=%an <%ae> %ad %cn %cd%n%B', '--date=iso', 'main']);
    const author = ' Grace H., <grace@example.org> 2026-11-21 10:00:00 -0330';
    assert.equal(shown, `${author}  Grace H., 2026-11-21 10:00:00 -0330\nChange\n\nwith a body\n\n`);
    await git(work, ['fetch', '--quiet', url, 'main']);
    const files = await git(work, ['ls-tree', '-r', 'FETCH_HEAD']);
    assert.equal(files.split('\n').length, 5);
    for (const line of [/^100644 blob e69de29\S*\t"f\\377"$/m, /^100755 blob \S+\trun$/m, /\tlib\/main\.c$/m]) {
      assert.match(files, line);
    }
    assert.equal(await git(work, ['show', 'FETCH_HEAD:docs/ä.md']), 'ä\r\n');
  });

  test('begins an empty repository, and is by the account where it names nobody', async (context) => {
    const { url, written } = await empty();
    const result = await written({ expected: ZERO, changes: [put('a/b/c', 'text')] });
    assert.deepEqual([result.before, result.commit.parents], [ZERO, []]);
    const clone = await cloned(context, url);
    assert.match(
      await git(clone, ['log', '--format=%an <%ae> %ad', '--date=raw']),
      /^ada <ada@users\.noreply\.\S+> \d+ \+0000\n$/,
    );
    assert.equal(await git(clone, ['show', 'HEAD:a/b/c']), 'text');
  });

  test('begins a new branch where it is told to, and an existing one begins nowhere', async (context) => {
    const { head, written, refused } = await pushed(context);
    const changes = [put('new', 'text')];
    for (const [branch, start] of [
      ['one', 'main'],
      ['two', head],
      ['three', 'refs/heads/main'],
    ]) {
      assert.deepEqual((await written({ branch, start, changes })).commit.parents, [head]);
    }
    assert.deepEqual((await written({ branch: 'orphan', changes })).commit.parents, []);
    for (const [start, branch, type] of [
      ['none', 'four', 'start-not-found'],
      ['1'.repeat(40), 'four', 'start-not-found'],
      ['main', 'main', 'start-of-existing-branch'],
    ]) {
      const { detail } = await refused({ branch, start, changes }, 422);
      assert.deepEqual(detail, [{ ...(detail[0] as object), loc: ['body', 'start'], type }]);
    }
  });

  test('is refused where the head is another than its writer saw, and told which', async (context) => {
    const { head, written, refused } = await pushed(context);
    const changes = [put('new', 'text')];
    const { after } = await written({ expected: head, changes });
    const late = await refused({ expected: head, changes: [put('other', 'text')] }, 409);
    assert.deepEqual([late.code, late.head], ['head-moved', after]);
    assert.equal((await refused({ expected: ZERO, changes }, 409)).head, after);
    assert.equal((await refused({ branch: 'none', expected: head, changes }, 409)).head, ZERO);
  });

  test('that changes nothing is not made, unless its writer wants it', async (context) => {
    const { head, send, written, refused } = await pushed(context);
    const same = await send({ changes: [put('src/main.c', 'main\n')] });
    assert.equal(same.status, 200, same.text);
    const { commit, before, after, event_id } = same.body as Written;
    assert.deepEqual([commit.hexsha, before, after, event_id], [head, head, head, null]);
    assert.equal((await refused({ changes: [] }, 422)).code, undefined);
    assert.deepEqual((await written({ changes: [], allow_empty: true })).commit.parents, [head]);
  });

  test('tells which change does not fit, and what is there instead', async (context) => {
    const { head, blob, send, written, refused } = await pushed(context);
    const text = put('new', 'text');
    for (const [change, field, type] of [
      [put('.GIT/config', ''), 'path', 'path-forbidden'],
      [put('src', ''), 'path', 'path-is-folder'],
      [put('new', ''), 'path', 'path-changed-twice'],
      [put('README/x', ''), 'path', 'path-below-file'],
      [{ action: 'delete', path: 'none' }, 'path', 'path-missing'],
      [{ action: 'move', path: 'README', to: 'src' }, 'to', 'path-exists'],
      [{ action: 'put', path: 'x', blob: '1'.repeat(40) }, 'blob', 'blob-not-found'],
      [{ action: 'put', path: 'x', blob: head }, 'blob', 'blob-not-found'],
      [{ action: 'put', path: 'x' }, 'content', 'custom'],
      [{ action: 'put', path: 'x', content: '', blob }, 'content', 'custom'],
      [{ action: 'put', path: 'x', content_base64: 'YQ' }, 'content_base64', 'custom'],
      [{ action: 'put', content: '' }, 'path', 'custom'],
      [{ action: 'put', path: 'x', content: '', mode: '160000' }, 'mode', 'invalid_value'],
    ] as const) {
      const { detail } = await refused({ changes: [text, change] }, 422);
      assert.deepEqual(detail, [{ ...(detail[0] as object), loc: ['body', 'changes', 1, field], type }]);
    }
    const stale = { ...put('src/main.c', 'x'), expected_blob: head };
    const moved = await refused({ changes: [text, stale] }, 409);
    assert.deepEqual([moved.code, moved.index, moved.path, moved.blob], ['blob-moved', 1, 'src/main.c', blob]);
    const fits = [
      { ...stale, expected_blob: blob },
      { ...put('y', ''), expected_blob: ZERO },
    ];
    assert.equal((await written({ changes: [...fits, { action: 'put', path: 'copy', blob }] })).before, head);
    assert.equal((await send({ branch: 'a..b', changes: [text] })).status, 422);
  });

  test('names no blob and no start that only a deleted branch reached', async (context) => {
    const { url, work, send } = await pushed(context);
    await git(work, ['checkout', '--quiet', '-b', 'gone']);
    const secret = await commitFile(work, 'secret', 'secret\n');
    const blob = (await git(work, ['rev-parse', 'HEAD:secret'])).trim();
    await git(work, ['push', '--quiet', url, 'gone']);
    const named = { branch: 'copy', changes: [{ action: 'put', path: 'copied', blob }] };
    assert.equal((await send({ ...named, start: secret })).status, 201);
    await git(work, ['push', '--quiet', url, ':gone', ':copy']);
    const [there, none] = [
      await send({ ...named, branch: 'x' }),
      await send({ branch: 'x', changes: [{ action: 'put', path: 'copied', blob: '2'.repeat(40) }] }),
    ];
    assert.deepEqual([there.status, there.text], [422, none.text]);
    const starts = [secret, '2'.repeat(40)].map((start) => send({ branch: 'x', start, changes: [put('a', '')] }));
    const [hidden, absent] = await Promise.all(starts);
    assert.deepEqual([hidden?.status, hidden?.text], [422, absent?.text]);
  });

  test('is refused with the words of git fsck where git takes no such file, also when it is only tried', async (context) => {
    const { send } = await pushed(context);
    const changes = [{ action: 'put', path: '.gitmodules', mode: '120000', content: 'elsewhere' }];
    for (const dry_run of [true, false]) {
      const answer = await send({ changes, dry_run });
      assert.equal(answer.status, 422, answer.text);
      assert.match(answer.text, /gitmodulesSymlink/);
    }
  });

  test('that is only tried tells what it would change, and stores nothing', async (context) => {
    const { name, url, work, head, send, written, refused } = await pushed(context);
    const read = async (path: string) => api(nodes[0], ada.token, 'GET', `/v1/repos/ada/${name}/${path}`);
    const changes = [
      { action: 'move', path: 'src/main.c', to: 'main.c' },
      put('README', 'one\ntwo\n'),
      { action: 'put', path_base64: Buffer.from([0x66, 0xff]).toString('base64'), content: 'text\n' },
    ];
    for (const body of [
      { changes },
      { branch: 'begun', start: head, changes: [put('src', 'no folder'), { action: 'delete', path: 'src/main.c' }] },
      { branch: 'orphan', changes: [put('first', 'text')] },
    ]) {
      const before = await git(work, ['ls-remote', url]);
      const tried = await send({ ...body, dry_run: true });
      assert.equal(tried.status, 200, tried.text);
      const { ref, before: seen, tree, files, files_truncated } = tried.body as Tried;
      assert.equal(await git(work, ['ls-remote', url]), before);
      assert.equal((await read(`trees/${tree}`)).status, 404);
      const { commit, ...result } = await written(body);
      assert.deepEqual([ref, seen], [result.ref, result.before]);
      const made = (await read(`commits/${commit.hexsha}`)).body as Tried;
      assert.deepEqual({ files, files_truncated }, { files: made.files, files_truncated: made.files_truncated });
      await git(work, ['fetch', '--quiet', url, ref]);
      assert.equal((await git(work, ['rev-parse', 'FETCH_HEAD^{tree}'])).trim(), tree);
    }
    const same = await send({ changes: [put('README', 'one\ntwo\n')], dry_run: true });
    assert.deepEqual([same.status, (same.body as Tried).files], [200, []]);
    assert.equal((await refused({ expected: head, changes, dry_run: true }, 409)).code, 'head-moved');
    const below = await refused({ branch: 'main/below', changes: [put('a', '')], dry_run: true }, 422);
    assert.deepEqual(below.detail, [{ ...(below.detail[0] as object), loc: ['body', 'branch'], type: 'ref-collides' }]);
  });

  test('with any head is written by all who race, on two nodes, and none is lost', async (context) => {
    const { url, send } = await pushed(context);
    const writers = Array.from({ length: 8 }, (_, n) =>
      send({ changes: [put(`file-${n}`, `${n}`)] }, nodes[n % 2 === 0 ? 0 : 1]),
    );
    for (const answer of await Promise.all(writers)) assert.equal(answer.status, 201, answer.text);
    const clone = await cloned(context, url);
    assert.equal((await git(clone, ['rev-list', '--count', 'main'])).trim(), '10');
    assert.equal((await git(clone, ['ls-tree', '--name-only', 'main'])).split('\n').length - 1, 10);
  });

  test('with any head never overwrites what another wrote to its path', async (context) => {
    const { url, send } = await pushed(context);
    const writers = Array.from({ length: 8 }, (_, n) =>
      send({ changes: [put('same', `${n}`)] }, nodes[n % 2 === 0 ? 0 : 1]),
    );
    const answers = await Promise.all(writers);
    const written = answers.filter(({ status }) => status === 201);
    for (const answer of answers) {
      if (answer.status === 201) continue;
      assert.equal(answer.status, 409, answer.text);
      assert.deepEqual([(answer.body as Refused).code, (answer.body as Refused).path], ['blob-moved', 'same']);
    }
    const clone = await cloned(context, url);
    assert.equal((await git(clone, ['rev-list', '--count', 'main'])).trim(), String(2 + written.length));
  });

  test('has large contents that come in parts, on either node, and a clone has every byte of them', async (context) => {
    const { name, url, head } = await pushed(context);
    const contents = [Buffer.from(randomBytes(6_000_000)), Buffer.alloc(0), Buffer.alloc(20_000_000, 'a')];
    const paths = contents.map((_, n) => `parts/${n}`);
    const bodyOf = (more: object): FormData => {
      const form = new FormData();
      const changes = [put('text', 'text'), ...paths.map((path) => ({ action: 'put', path, part: path }))];
      form.append('commit', JSON.stringify({ branch: 'main', expected: 'any', message: 'Parts', changes, ...more }));
      for (const [n, content] of contents.entries()) form.append(`parts/${n}`, new Blob([content]));
      return form;
    };
    const send = async (node: Strata, more: object) => {
      const answer = await fetch(`${node.url}/v1/repos/ada/${name}/commits`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${ada.token}` },
        body: bodyOf(more),
      });
      return [answer.status, (await answer.json()) as Written & Tried] as const;
    };
    const [tried, { files }] = await send(nodes[0], { dry_run: true });
    assert.deepEqual([tried, files.length], [200, 4]);
    for (const [index, node] of nodes.entries()) {
      const branch = `branch-${index}`;
      const [status, { commit }] = await send(node, { branch, start: head });
      assert.deepEqual([status, commit.parents], [201, [head]]);
    }
    const clone = await cloned(context, url);
    for (const [n, content] of contents.entries()) {
      const id = (await git(clone, ['hash-object', '--stdin'], content)).trim();
      for (const branch of ['branch-0', 'branch-1']) {
        assert.equal((await git(clone, ['rev-parse', `${branch}:parts/${n}`])).trim(), id);
      }
    }
    for (const node of nodes) assert.deepEqual(await leftovers(node), []);
  });

  test('has a message, authors and changes up to their limits, and not one more', async (context) => {
    const { url, written, refused } = await empty();
    const author = { name: 'n'.repeat(AUTHOR_TEXT_LENGTH_MAX), email: 'e' };
    const many = Array.from({ length: COMMIT_CHANGES_MAX }, (_, n) => put(`${n % 100}/${n}`, `${n}`));
    const message = 'ä'.repeat(NEW_MESSAGE_BYTES_MAX / 2);
    await written({ author, message, changes: many });
    await refused({ message: `${message}m`, changes: [put('x', '')] }, 422);
    await refused({ author: { ...author, name: `${author.name}n` }, changes: [put('x', '')] }, 422);
    await refused({ author: { name: 'a<b', email: 'e' }, changes: [put('x', '')] }, 422);
    await refused({ author: { ...author, date: '1969-12-31T23:59:59Z' }, changes: [put('x', '')] }, 422);
    await refused({ changes: [...many, put('x', '')] }, 422);
    const clone = await cloned(context, url);
    assert.equal(
      (await git(clone, ['ls-tree', '-r', '--name-only', 'main'])).split('\n').length - 1,
      COMMIT_CHANGES_MAX,
    );
  });
});
