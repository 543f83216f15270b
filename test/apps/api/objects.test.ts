/** Blobs and trees over REST, by their ids. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { CONTENTS_ENTRIES_MAX } from '../../../apps/api/schemas/contents.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { CONTENTS_FILE_BYTES_MAX, LEFT_TIP_SPAN_MS } from '../../../core/kernel/limits.ts';
import {
  CONTENTS_BUFFERED_BYTES_MAX,
  CONTENTS_NAMES_BYTES_MAX,
} from '../../../core/use-cases/reading/read-contents.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';

const TRANSFER_QUOTA_BYTES = 10_000;

describe('By its id', () => {
  let fixture: ApiFixture;
  let token: TestToken;
  let commit: ObjectId;
  let root: ObjectId;
  let src: ObjectId;
  const binary = randomBytes(2_000);
  const large = 'Zeile ä\n"quoted" \u0001 😀\\'.repeat(Math.ceil(CONTENTS_BUFFERED_BYTES_MAX / 30) + 1);
  const blobs: Record<string, ObjectId> = {};

  beforeAll(async () => {
    fixture = await createApiFixture({
      plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, transfer_bytes: TRANSFER_QUOTA_BYTES } },
    });
    const ada = await fixture.account('ada');
    token = await fixture.token(ada, { grants: ['API_COMMITS_READ'] });
    const { objects } = fixture;
    const blob = (name: string, content: string | Buffer): readonly [string, ObjectId] => {
      const id = objects.blob(content);
      blobs[name] = id;
      return ['100644', id];
    };
    const latin1 = { name: Buffer.from('caf\xe9', 'latin1'), mode: '100644', id: objects.blob('latin1') };
    src = objects.tree({ 'main.c': blob('main.c', 'int main;\n'), deep: ['040000', objects.rawTree([latin1])] });
    root = objects.tree({
      README: blob('README', '# Readme ä\n'),
      binary: blob('binary', binary),
      large: blob('large', large),
      limit: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX)],
      beyond: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX + 1)],
      module: ['160000', objects.commit({ tree: objects.tree({}), seconds: 99 })],
      src: ['040000', src],
      'src.txt': blob('src.txt', 'sorts before the folder'),
    });
    commit = objects.commit({ tree: root, seconds: 1 });
    const repository = await fixture.repository(ada, 'files', 'main');
    await fixture.push(repository, { 'refs/heads/main': commit });
  });
  afterAll(() => fixture.close());

  const get = (path: string, headers: Readonly<Record<string, string>> = {}, method: 'GET' | 'HEAD' = 'GET') =>
    fixture.request(method, `/v1/repos/ada/files/${path}`, token, { headers });
  const paths = (answer: { readonly json: () => { readonly entries: readonly { readonly path: string }[] } }) =>
    answer.json().entries.map(({ path }) => path);

  describe('a blob', () => {
    test('is sent as a file of contents is, without a path', async () => {
      const text = await get(`blobs/${blobs['README']}`);
      assert.equal(text.statusCode, 200, text.body);
      const sha = blobs['README'];
      assert.deepEqual(text.json(), { sha, size: 12, encoding: 'utf-8', content: '# Readme ä\n' });
      const bytes = (await get(`blobs/${blobs['binary']?.toUpperCase()}`)).json();
      assert.deepEqual([bytes.encoding, bytes.sha], ['base64', blobs['binary']]);
      assert.ok(Buffer.from(bytes.content, 'base64').equals(binary));
      const streamed = (await get(`blobs/${blobs['large']}`)).json();
      assert.ok(streamed.content === large);
      assert.equal(fixture.objects.openReaders(), 0);
    });

    test('has raw bytes that no browser runs, and ranges of them', async () => {
      for (const [query, headers] of [
        ['?raw=true', {}],
        ['', { accept: 'application/octet-stream' }],
      ] as const) {
        const raw = await get(`blobs/${blobs['binary']}${query}`, headers);
        assert.ok(raw.rawPayload.equals(binary));
        assert.equal(raw.headers['content-disposition'], `attachment; filename="${blobs['binary']}"`);
        assert.match(String(raw.headers['content-security-policy']), /sandbox/);
      }
      for (const [name, bytes] of [
        ['binary', binary],
        ['large', Buffer.from(large)],
      ] as const) {
        const part = await get(`blobs/${blobs[name]}?raw=true`, { range: 'bytes=10-19' });
        assert.deepEqual([part.statusCode, part.rawPayload.equals(bytes.subarray(10, 20))], [206, true]);
      }
      assert.equal(fixture.objects.openReaders(), 0);
    });

    test('of more than 64 MiB is refused', async () => {
      const beyond = fixture.objects.hugeBlob(CONTENTS_FILE_BYTES_MAX + 1);
      assert.equal((await get(`blobs/${beyond}?raw=true`)).statusCode, 403);
      assert.equal((await get(`blobs/${beyond}`)).statusCode, 403);
      const limit = fixture.objects.hugeBlob(CONTENTS_FILE_BYTES_MAX);
      assert.equal((await get(`blobs/${limit}?raw=true`, {}, 'HEAD')).statusCode, 200);
    });

    test('is not sent again to who has it', async () => {
      for (const query of ['', '?raw=true']) {
        const first = await get(`blobs/${blobs['README']}${query}`);
        const again = await get(`blobs/${blobs['README']}${query}`, { 'if-none-match': String(first.headers.etag) });
        assert.deepEqual([again.statusCode, again.body], [304, '']);
      }
    });
  });

  describe('a tree', () => {
    test('lists its entries as a folder does, with paths from the tree down', async () => {
      const answer = await get(`trees/${root}`);
      assert.equal(answer.statusCode, 200, answer.body);
      const { sha, entries, pagination } = answer.json();
      const contents = (await get('contents')).json();
      assert.deepEqual([sha, entries, pagination], [root, contents.entries, contents.pagination]);
      const below = (await get(`trees/${src}`)).json();
      assert.deepEqual(paths({ json: () => below }), ['deep', 'main.c']);
    });

    test('lists what is below it, each folder before what is in it', async () => {
      const answer = await get(`trees/${root}?recursive=true`);
      const all = ['README', 'beyond', 'binary', 'large', 'limit', 'module', 'src.txt', 'src', 'src/deep'];
      assert.deepEqual(paths(answer), [...all, 'src/deep/caf\ufffd', 'src/main.c']);
      const { entries, pagination } = answer.json();
      assert.deepEqual(pagination, { page: 0, limit: CONTENTS_ENTRIES_MAX, total: null, has_more: false });
      const [, , , , , module, , folder, , odd, file] = entries;
      assert.deepEqual([module.type, module.size, folder.type, folder.size], ['submodule', null, 'dir', null]);
      assert.deepEqual([odd.name, odd.path_encoded], ['caf\ufffd', 'src/deep/caf%E9']);
      assert.deepEqual(file, {
        ...{ name: 'main.c', mode: '100644', sha: blobs['main.c'], path: 'src/main.c', type: 'file', size: 10 },
      });
    });

    test('is listed in pages', async () => {
      for (const recursive of [false, true]) {
        const whole = paths(await get(`trees/${root}?recursive=${recursive}`));
        const found: string[] = [];
        for (let page = 0, more = true; more; page += 1) {
          const answer = await get(`trees/${root}?recursive=${recursive}&limit=3&page=${page}`);
          found.push(...paths(answer));
          more = answer.json().pagination.has_more;
          assert.equal(more, found.length < whole.length);
        }
        assert.deepEqual(found, whole);
        const beyond = await get(`trees/${root}?recursive=${recursive}&page=1000000`);
        assert.deepEqual([beyond.statusCode, recursive], [recursive ? 422 : 200, recursive]);
      }
      assert.equal((await get(`trees/${root}?limit=${CONTENTS_ENTRIES_MAX + 1}`)).statusCode, 422);
    });

    test('whose names and paths on a page take more than 2 MiB is refused', async () => {
      const { objects } = fixture;
      const long = 'x'.repeat(CONTENTS_NAMES_BYTES_MAX / 4 - 1);
      const names = ['a', 'b'].map((start) => `${start}${long}`);
      const blob = ['100644', objects.blob('x')] as const;
      const fits = objects.tree(Object.fromEntries(names.map((name) => [name, blob])));
      const exceeds = objects.tree(Object.fromEntries([...names, 'c'].map((name) => [name, blob])));
      assert.equal((await get(`trees/${fits}`)).statusCode, 200);
      assert.equal((await get(`trees/${exceeds}`)).statusCode, 422);
      assert.equal((await get(`trees/${exceeds}?limit=2`)).statusCode, 200);
    });

    test('is not sent again to who has the same page', async () => {
      const tags = new Set<string>();
      for (const query of ['', '?limit=2', '?limit=2&page=1', '?recursive=true', '?recursive=true&limit=2']) {
        const etag = String((await get(`trees/${root}${query}`)).headers.etag);
        assert.equal((await get(`trees/${root}${query}`, { 'if-none-match': etag })).statusCode, 304);
        tags.add(etag);
      }
      assert.equal(tags.size, 5);
    });
  });

  // The attack: a reader names the id of what was pushed by mistake and forced away.
  test('nothing is found that no ref reaches, and it answers as what does not exist', async () => {
    const eve = await fixture.account('eve');
    const reader = await fixture.token(eve, { grants: ['API_COMMITS_READ'] });
    const repository = await fixture.repository(eve, 'forced');
    const { objects } = fixture;
    const [secret, kept] = [objects.blob('secret'), objects.blob('kept')];
    const trees = [secret, kept].map((id) => objects.tree({ file: ['100644', id] }));
    const [first, second] = trees.map((tree, index) => objects.commit({ tree, seconds: index }));
    const read = (path: string) => fixture.request('GET', `/v1/repos/eve/forced/${path}`, reader);
    const statuses = async (ids: readonly string[]) => Promise.all(ids.map(async (id) => (await read(id)).statusCode));
    await fixture.push(repository, { 'refs/heads/main': first ?? null }, 100);
    assert.deepEqual(await statuses([`blobs/${secret}`, `trees/${trees[0]}`]), [200, 200]);
    await fixture.push(repository, { 'refs/heads/main': second ?? null }, 100);
    assert.deepEqual(await statuses([`blobs/${kept}`, `trees/${trees[1]}`]), [200, 200]);
    for (const wait of [0, LEFT_TIP_SPAN_MS + 1]) {
      fixture.clock.advance(wait);
      const absent = 'e'.repeat(40);
      for (const [hidden, missing] of [
        [`blobs/${secret}`, `blobs/${absent}`],
        [`trees/${trees[0]}`, `trees/${absent}`],
      ] as const) {
        const [one, other] = [await read(hidden), await read(missing)];
        assert.deepEqual([one.statusCode, one.body], [404, other.body]);
      }
    }
  });

  test('nothing is found of another type, or by a text that is no id', async () => {
    const wrong = [`blobs/${root}`, `blobs/${commit}`, `trees/${commit}`, `trees/${blobs['README']}`];
    for (const path of [...wrong, 'blobs/main', 'trees/HEAD', `trees/${root.slice(0, 10)}`]) {
      const answer = await get(path);
      assert.deepEqual([answer.statusCode, answer.json()], [404, { detail: 'Object not found' }], path);
    }
  });

  test('every byte counts as transfer, and nothing is sent when the quota is used up', async () => {
    const bob = await fixture.account('bob', 'FREE');
    const reader = await fixture.token(bob, { grants: ['API_COMMITS_READ'] });
    const repository = await fixture.repository(bob, 'metered', 'main');
    await fixture.push(repository, { 'refs/heads/main': commit });
    const read = (path: string) => fixture.request('GET', `/v1/repos/bob/metered/${path}`, reader);
    let sent = 0;
    for (let reads = 0; sent < TRANSFER_QUOTA_BYTES; reads += 1) {
      const answer = await read(reads % 2 === 0 ? `blobs/${blobs['binary']}?raw=true` : `trees/${root}`);
      assert.equal(answer.statusCode, 200, `${sent} bytes were sent`);
      sent += answer.rawPayload.length;
    }
    for (const path of [`blobs/${blobs['binary']}`, `trees/${root}`]) assert.equal((await read(path)).statusCode, 403);
  });
});
