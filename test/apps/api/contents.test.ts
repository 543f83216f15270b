/** Contents over REST: files, folders, links, raw bytes, ranges, limits and transfer. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { CONTENTS_ENTRIES_MAX } from '../../../apps/api/schemas/contents.ts';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { CONTENTS_FILE_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { CONTENTS_BUFFERED_BYTES_MAX } from '../../../core/use-cases/reading/read-contents.ts';
import { type ApiFixture, createApiFixture, type TestToken } from '../../support/api-fixture.ts';
import { rawRequest } from '../../support/raw-http.ts';

const TRANSFER_QUOTA_BYTES = 10_000;
const CHUNKED = CONTENTS_BUFFERED_BYTES_MAX + 12_345;

describe('contents', () => {
  let fixture: ApiFixture;
  let owner: AccountId;
  let token: TestToken;
  let commit: ObjectId;
  let port: number;
  const binary = randomBytes(2_000);
  const largeText = 'Zeile ä\n"quoted" \u0001 😀\\'.repeat(Math.ceil(CHUNKED / 30));
  const largeBytes = Buffer.concat([randomBytes(CHUNKED), Buffer.from([0, 0xff])]);
  const blobs: Record<string, ObjectId> = {};

  beforeAll(async () => {
    fixture = await createApiFixture({
      plans: { ...DEFAULT_PLANS, FREE: { ...DEFAULT_PLANS.FREE, transfer_bytes: TRANSFER_QUOTA_BYTES } },
    });
    owner = await fixture.account('ada');
    token = await fixture.token(owner);
    const { objects } = fixture;
    const blob = (name: string, content: string | Buffer): readonly [string, ObjectId] => {
      const id = objects.blob(content);
      blobs[name] = id;
      return ['100644', id];
    };
    const latin1Name = { name: Buffer.from('caf\xe9', 'latin1'), mode: '100644', id: objects.blob('latin1') };
    const odd = objects.rawTree([latin1Name]);
    const src = objects.tree({ 'main.c': blob('main.c', 'int main;\n'), 'a b+c%.txt': blob('odd', 'odd') });
    const tree = objects.tree({
      'README.md': blob('README.md', '# Readme ä\n'),
      binary: blob('binary', binary),
      'nul.txt': blob('nul.txt', 'a\0b'),
      empty: blob('empty', ''),
      run: ['100755', blob('run', '#!/bin/sh\n')[1]],
      link: ['120000', blob('link', '../elsewhere')[1]],
      'links-to-src': ['120000', objects.blob('src')],
      module: ['160000', objects.commit({ tree: objects.tree({}), seconds: 99 })],
      src: ['040000', src],
      'src.txt': blob('src.txt', 'sorts before the folder'),
      odd: ['040000', odd],
      'large.txt': blob('large.txt', largeText),
      'large.bin': blob('large.bin', largeBytes),
      limit: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX)],
      beyond: ['100644', objects.hugeBlob(CONTENTS_FILE_BYTES_MAX + 1)],
      '..': blob('dots', 'never reached'),
    });
    commit = objects.commit({ tree, seconds: 1 });
    const repository = await fixture.repository(owner, 'files', 'main');
    await fixture.push(repository, { 'refs/heads/main': commit, 'refs/tags/v1': objects.tag(commit, 'v1') });
    await fixture.repository(owner, 'empty');
    port = await fixture.listen();
  });
  afterAll(() => fixture.close());

  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fixture.request('GET', `/v1/repos/ada/files/contents${path}`, token, { headers });
  const place = (path: string) => ({ path, ref: 'main', commit });

  test('a text file is sent as utf-8 with its path, ref and commit', async () => {
    const answer = await get('/README.md');
    assert.equal(answer.statusCode, 200);
    assert.deepEqual(answer.json(), {
      type: 'file',
      name: 'README.md',
      mode: '100644',
      sha: blobs['README.md'],
      size: 12,
      ...place('README.md'),
      encoding: 'utf-8',
      content: '# Readme ä\n',
    });
    assert.equal((await get('/run')).json().mode, '100755');
  });

  test('a file that is not UTF-8, or holds NUL, is sent as base64', async () => {
    const answer = (await get('/binary')).json();
    assert.equal(answer.encoding, 'base64');
    assert.deepEqual(Buffer.from(answer.content, 'base64'), binary);
    assert.equal((await get('/nul.txt')).json().content, Buffer.from('a\0b').toString('base64'));
    const empty = (await get('/empty')).json();
    assert.deepEqual([empty.encoding, empty.content, empty.size], ['utf-8', '', 0]);
  });

  test('a large file is streamed as the same JSON', async () => {
    const text = (await get('/large.txt')).json();
    assert.equal(text.encoding, 'utf-8');
    assert.ok(text.content === largeText);
    assert.deepEqual([text.type, text.path, text.size], ['file', 'large.txt', Buffer.byteLength(largeText)]);
    const bytes = (await get('/large.bin')).json();
    assert.equal(bytes.encoding, 'base64');
    assert.ok(Buffer.from(bytes.content, 'base64').equals(largeBytes));
  });

  test('the root and folders list their entries in git order', async () => {
    const root = (await get('')).json();
    assert.deepEqual(
      { ...root, entries: [] },
      {
        ...{ type: 'dir', ...place(''), entries: [] },
        pagination: { page: 0, limit: CONTENTS_ENTRIES_MAX, total: root.entries.length, has_more: false },
      },
    );
    const names = root.entries.map(({ name }: { name: string }) => name);
    assert.ok(names.indexOf('src.txt') < names.indexOf('src'), 'a folder sorts as if its name ended in a slash');
    const entry = (name: string) => root.entries.find((candidate: { name: string }) => candidate.name === name);
    assert.deepEqual(entry('README.md'), {
      name: 'README.md',
      mode: '100644',
      sha: blobs['README.md'],
      path: 'README.md',
      type: 'file',
      size: 12,
    });
    assert.deepEqual([entry('src').type, entry('src').mode, entry('src').size], ['dir', '040000', null]);
    assert.deepEqual([entry('link').type, entry('link').size], ['symlink', 12]);
    assert.deepEqual([entry('module').type, entry('module').size], ['submodule', null]);
    const folder = (await get('/src')).json();
    assert.deepEqual(
      folder.entries.map(({ path }: { path: string }) => path),
      ['src/a b+c%.txt', 'src/main.c'],
    );
    assert.deepEqual((await get('/src/')).json(), folder);
    assert.deepEqual((await get('/')).json(), root);
  });

  test('a folder is listed in pages', async () => {
    const { objects } = fixture;
    const blob = objects.blob('x');
    const names = Array.from({ length: CONTENTS_ENTRIES_MAX + 1 }, (_, index) => `f${String(index).padStart(5, '0')}`);
    const tree = objects.tree(Object.fromEntries(names.map((name) => [name, ['100644', blob] as const])));
    const lister = await fixture.account('lister');
    const secret = await fixture.token(lister);
    const wide = await fixture.repository(lister, 'wide');
    await fixture.push(wide, { 'refs/heads/master': objects.commit({ tree, seconds: 1 }) });
    const page = async (query: string) =>
      (await fixture.request('GET', `/v1/repos/lister/wide/contents${query}`, secret)).json();
    const listed = (answer: { entries: { name: string }[] }) => answer.entries.map(({ name }) => name);
    const first = await page('');
    assert.deepEqual(listed(first), names.slice(0, CONTENTS_ENTRIES_MAX));
    assert.deepEqual(first.pagination, { page: 0, limit: CONTENTS_ENTRIES_MAX, total: names.length, has_more: true });
    assert.deepEqual(listed(await page('?page=1')), names.slice(CONTENTS_ENTRIES_MAX));
    assert.deepEqual(listed(await page('?page=2&limit=3')), names.slice(6, 9));
    const tooLong = await page(`?limit=${CONTENTS_ENTRIES_MAX + 1}`);
    assert.deepEqual(tooLong.detail[0].loc, ['query', 'limit']);
  });

  test('a symbolic link shows its target and is not followed', async () => {
    const link = (await get('/link')).json();
    assert.deepEqual(
      { ...link, sha: null },
      { type: 'symlink', name: 'link', mode: '120000', sha: null, size: 12, ...place('link'), target: '../elsewhere' },
    );
    assert.equal((await get('/links-to-src/main.c')).statusCode, 404);
    assert.equal((await get('/link?raw=true')).body, '../elsewhere');
  });

  test('a submodule shows the commit it names', async () => {
    const module = (await get('/module')).json();
    assert.deepEqual(
      { ...module, sha: null },
      { type: 'submodule', name: 'module', mode: '160000', sha: null, size: null, ...place('module') },
    );
    assert.equal((await get('/module/file')).statusCode, 404);
  });

  test('ref is a branch, a tag, a full name, a commit id or HEAD', async () => {
    for (const ref of ['main', 'v1', commit, 'refs/tags/v1']) {
      const answer = (await get(`/README.md?ref=${ref}`)).json();
      assert.equal(answer.ref, ref);
      assert.equal(answer.commit, commit);
    }
    for (const ref of ['', 'HEAD']) {
      const answer = (await get(`/README.md?ref=${ref}`)).json();
      assert.deepEqual([answer.ref, answer.commit], [ref === '' ? 'main' : 'HEAD', commit], 'the default branch');
    }
    for (const ref of ['nothing', 'main~0', 'head', 'heads/main', blobs['README.md']]) {
      const answer = await get(`/README.md?ref=${ref}`);
      assert.equal(answer.statusCode, 404, ref);
      assert.deepEqual(answer.json(), { detail: 'Ref not found' });
    }
  });

  test('a repository without commits answers 404 with the specified message', async () => {
    for (const path of ['', '/', '/README.md', '/a/../b', '?raw=true']) {
      const answer = await fixture.request('GET', `/v1/repos/ada/empty/contents${path}`, token);
      assert.equal(answer.statusCode, 404);
      assert.deepEqual(answer.json(), { detail: 'No commit found in the repository' });
    }
  });

  test('escapes are decoded once, and an encoded slash separates names', async () => {
    for (const path of [
      '/src/main.c',
      '/src%2Fmain.c',
      '/%73rc/main%2Ec',
      '/src/a%20b+c%25.txt',
      '/src/a b+c%25.txt',
    ]) {
      assert.equal((await get(path)).statusCode, 200, path);
    }
    for (const path of ['/src%252Fmain.c', '/src/a%20b%20c%25.txt', '/src/a%20b+c%.txt', '/src/a%20b+c%2']) {
      assert.equal((await get(path)).statusCode, 404, path);
    }
  });

  test('a name that is not UTF-8 is reached by its bytes and shown with U+FFFD', async () => {
    const folder = (await get('/odd')).json();
    assert.equal(folder.entries[0].name, 'caf\ufffd');
    const file = await get('/odd/caf%E9');
    assert.equal(file.statusCode, 200);
    assert.deepEqual([file.json().content, file.json().path], ['latin1', 'odd/caf\ufffd']);
    const raw = await get('/odd/caf%e9?raw=true');
    assert.equal(raw.headers['content-disposition'], `attachment; filename="caf_"; filename*=UTF-8''caf%EF%BF%BD`);
    assert.equal((await get('/odd/caf%C3%A9')).statusCode, 404);
  });

  test('a hostile path matches nothing', async () => {
    const paths = [
      ...['/..', '/%2e%2e', '/src/..', '/src/../README.md', '/./README.md', '/src/%2e/main.c', '/src//main.c', '//'],
      ...['/%00', '/README.md%00', '/README.md%00.png', '/README.md/', '/README.md/x', '/readme.md', '/src/main.c//'],
      ...[
        '/--output=x',
        '/%ff',
        '/src%5Cmain.c',
        `/${'x'.repeat(5_000)}`,
        '/.git/config',
        '/%2e%2e%2f%2e%2e%2fetc/passwd',
      ],
    ];
    for (const path of paths) {
      // Sent over a socket: HTTP clients remove `..` from a path.
      const answer = await rawRequest(port, {
        target: `/v1/repos/ada/files/contents${path}`,
        headers: [`Authorization: Bearer ${token.secret}`],
      });
      assert.equal(answer.status, 404, path);
      assert.deepEqual(JSON.parse(answer.body), { detail: 'Path not found' }, path);
    }
  });

  test('raw bytes are sent as an attachment that no browser runs', async () => {
    for (const [query, headers] of [
      ['?raw=true', {}],
      ['', { accept: 'application/octet-stream' }],
      ['', { accept: 'application/octet-stream, */*;q=0.1' }],
      ['', { accept: 'application/json;q=0.5, application/octet-stream' }],
    ] as const) {
      const answer = await get(`/binary${query}`, headers);
      assert.equal(answer.statusCode, 200);
      assert.ok(answer.rawPayload.equals(binary));
      assert.equal(answer.headers['content-type'], 'application/octet-stream');
      assert.equal(answer.headers['content-disposition'], 'attachment; filename="binary"');
      assert.equal(answer.headers['x-content-type-options'], 'nosniff');
      assert.match(String(answer.headers['content-security-policy']), /sandbox/);
      assert.equal(answer.headers['content-length'], '2000');
      assert.match(String(answer.headers['vary']), /^accept(, accept-encoding)?$/);
    }
    for (const [query, headers] of [
      ['?raw=false', { accept: 'application/octet-stream' }],
      ['', { accept: '*/*' }],
      ['', { accept: 'application/*' }],
      ['', { accept: 'application/octet-stream;q=0' }],
      ['', { accept: 'application/json, application/octet-stream' }],
    ] as const) {
      const answer = await get(`/binary${query}`, headers);
      assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8', JSON.stringify(headers));
    }
    assert.ok((await get('/large.bin?raw=true')).rawPayload.equals(largeBytes));
  });

  test('the path of raw bytes answers what contents answer with `raw`, and takes no other parameter but the ref', async () => {
    const raw = (rest: string, headers: Readonly<Record<string, string>> = {}) =>
      fixture.request('GET', `/v1/repos/ada/files/raw${rest}`, token, { headers });
    for (const path of ['/binary', '/large.bin', '/odd/caf%e9', '/link', '/src', '/nowhere']) {
      const [one, other] = [await raw(path, { accept: 'application/json' }), await get(`${path}?raw=true`)];
      assert.equal(one.statusCode, other.statusCode, path);
      assert.equal(one.headers['content-type'], other.headers['content-type'], path);
      assert.equal(one.headers.etag, other.headers.etag, path);
      assert.ok(one.rawPayload.equals(other.rawPayload), path);
    }
    const part = await raw('/binary', { range: 'bytes=1-2' });
    assert.deepEqual([part.statusCode, part.rawPayload], [206, binary.subarray(1, 3)]);
    assert.equal((await raw('/binary?ref=nowhere')).statusCode, 404);
    for (const query of ['raw=false', 'page=0', 'limit=1']) {
      assert.equal((await raw(`/binary?${query}`)).statusCode, 422, query);
    }
  });

  test('raw bytes of a folder or a submodule are 422, and so is an unknown value of raw', async () => {
    for (const path of ['?raw=true', '/src?raw=true', '/module?raw=true']) {
      const answer = await get(path);
      assert.equal(answer.statusCode, 422, path);
      assert.deepEqual(answer.json(), { detail: 'The path does not lead to a file' });
    }
    assert.deepEqual((await get('/binary?raw=1')).json().detail[0].loc, ['query', 'raw']);
    assert.equal((await get('/binary?raw=true&raw=false')).statusCode, 422);
  });

  test('ranges of raw bytes are served, of small files and of streamed ones', async () => {
    for (const [path, bytes] of [
      ['/binary?raw=true', binary],
      ['/large.bin?raw=true', largeBytes],
    ] as const) {
      const size = bytes.length;
      const etag = String((await fixture.request('HEAD', `/v1/repos/ada/files/contents${path}`, token)).headers.etag);
      for (const [range, start, end] of [
        ['bytes=0-0', 0, 1],
        ['bytes=10-19', 10, 20],
        [`bytes=${size - 1}-`, size - 1, size],
        ['bytes=-5', size - 5, size],
        ['bytes=5-999999999', 5, size],
        [`bytes=-${size + 10}`, 0, size],
      ] as const) {
        for (const condition of [{}, { 'if-range': etag }]) {
          const answer = await get(path, { range, ...condition });
          assert.equal(answer.statusCode, 206, range);
          assert.ok(answer.rawPayload.equals(bytes.subarray(start, end)), range);
          assert.equal(answer.headers['content-range'], `bytes ${start}-${end - 1}/${size}`);
        }
      }
      for (const range of [`bytes=${size}-`, 'bytes=-0']) {
        const answer = await get(path, { range });
        assert.equal(answer.statusCode, 416, range);
        assert.equal(answer.headers['content-range'], `bytes */${size}`);
        assert.equal(typeof answer.json().detail, 'string');
      }
      for (const headers of [
        ...['bytes=2-1', 'bytes=0-1,3-4', 'lines=0-1', 'bytes=x', 'bytes=-'].map((range) => ({ range })),
        { range: 'bytes=0-1', 'if-range': '"other"' },
        { range: 'bytes=0-1', 'if-range': `W/${etag}` },
        { range: 'bytes=0-1', 'if-range': 'Sat, 21 Nov 2026 10:00:00 GMT' },
      ]) {
        const answer = await get(path, headers);
        assert.equal(answer.statusCode, 200, JSON.stringify(headers));
        assert.equal(answer.rawPayload.length, size);
      }
    }
    assert.equal((await get('/empty?raw=true', { range: 'bytes=0-' })).statusCode, 416);
    assert.equal((await get('/empty?raw=true')).rawPayload.length, 0);
    assert.equal((await get('/binary', { range: 'bytes=0-1' })).statusCode, 200, 'JSON has no ranges');
  });

  test('an unchanged answer is 304, separately for JSON and raw bytes', async () => {
    for (const path of [
      '',
      '/README.md',
      '/binary?raw=true',
      '/large.txt',
      '/large.bin?raw=true',
      '/link',
      '/module',
    ]) {
      const etag = String((await get(path)).headers.etag);
      const again = await get(path, { 'if-none-match': etag });
      assert.equal(again.statusCode, 304, path);
      assert.equal(again.body, '');
      assert.equal(again.headers.etag, etag);
    }
    const json = (await get('/README.md')).headers.etag;
    assert.notEqual((await get('/README.md?raw=true')).headers.etag, json);
    assert.notEqual((await get('/README.md?ref=v1')).headers.etag, json, 'the JSON echoes the ref');
    const raw = (await get('/README.md?raw=true')).headers.etag;
    assert.equal((await get('/README.md?raw=true&ref=v1')).headers.etag, raw, 'the bytes do not');
  });

  test('a file of 64 MiB is sent, one byte more is 403', async () => {
    for (const query of ['', '?raw=true']) {
      const answer = await get(`/beyond${query}`);
      assert.equal(answer.statusCode, 403);
      assert.deepEqual(answer.json(), { detail: 'The file is larger than 64 MiB' });
    }
    const head = await fixture.request('HEAD', '/v1/repos/ada/files/contents/limit?raw=true', token);
    assert.equal(head.statusCode, 200);
    assert.equal(head.headers['content-length'], String(CONTENTS_FILE_BYTES_MAX));
  });

  test('are counted by exactly the bytes sent, and refused with 403 when the quota is used up', async () => {
    const account = await fixture.account('free', 'FREE');
    const free = await fixture.token(account);
    const repository = await fixture.repository(account, 'files', 'main');
    await fixture.push(repository, { 'refs/heads/main': commit });
    const read = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      fixture.request('GET', `/v1/repos/free/files/contents${path}`, free, { headers });
    const used = async () => (await fixture.request('GET', '/v1/account/usage', free)).json().transfer_bytes.used;
    const json = await read('/README.md');
    let sent = json.rawPayload.length;
    assert.equal(await used(), sent);
    await read('/README.md', { 'if-none-match': String(json.headers.etag) });
    await fixture.request('HEAD', '/v1/repos/free/files/contents/README.md', free);
    await read('/nothing');
    assert.equal(await used(), sent, 'nothing was sent');
    await read('/binary?raw=true', { range: 'bytes=0-99' });
    sent += 100;
    assert.equal(await used(), sent);
    while (sent < TRANSFER_QUOTA_BYTES) {
      const answer = await read('/binary?raw=true');
      assert.equal(answer.statusCode, 200);
      sent += answer.rawPayload.length;
      // The bytes in the log and those not yet appended both count.
      await fixture.context.transfer.flush();
      assert.equal(await used(), sent);
    }
    const refused = await read('/README.md');
    assert.equal(refused.statusCode, 403);
    assert.deepEqual(refused.json(), { detail: "The plan's quota of transfer is reached for this month" });
    assert.equal((await read('/large.bin?raw=true')).statusCode, 403);
    assert.equal(await used(), sent);
  });

  test('leave no object reader open', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(fixture.objects.openReaders(), 0);
  });
});
