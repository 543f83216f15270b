/**
 * Pushes of every shape that git sends: very many refs, very large files, odd names, submodules, each transfer coding.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { pack, wirePush } from '../support/git-wire.ts';
import {
  type Account,
  api,
  commitFile,
  createAccount,
  createRefs,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/**
 * The real git takes minutes for this many refs, since its lists grow with their square; the test sends them itself.
 */
const MANY_REFS = 20_000;
const GIT_REFS = 3_000;
const LARGE_BYTES = 100 * 1024 * 1024;

describe('A push', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    strata = await startNode(ending, await sharedParts(ending));
    ada = await createAccount(strata, 'ada');
  });

  test(`of ${MANY_REFS} refs creates them all, keeps them over a restart, and deletes them all`, async (context) => {
    const url = await createRepository(strata, ada, 'many');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const names = Array.from({ length: MANY_REFS }, (_, n) => `refs/heads/many/${n}`).toSorted();
    const target = { strata, account: ada, name: 'many' };
    const made = await wirePush(
      target,
      names.map((ref) => ({ ref, after: head })),
      pack([]),
    );
    assert.deepEqual([made.unpack, made.refs.size, new Set(made.refs.values())], ['ok', MANY_REFS, new Set(['ok'])]);
    const all = ['refs/heads/main', ...names].map((name) => `${head}\t${name}\n`).join('');
    assert.equal(await git(work, ['ls-remote', '--heads', url]), all);
    strata = await strata.restart();
    assert.equal(await git(work, ['ls-remote', '--heads', url]), all);
    const branches = await api(strata, ada.token, 'GET', '/v1/repos/ada/many/branches');
    assert.equal((branches.body as { branches: unknown[] }).branches.length, MANY_REFS + 1);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--mirror', url, 'back.git']);
    const listed = await git(path.join(clones, 'back.git'), ['for-each-ref', '--format=%(objectname)%09%(refname)']);
    assert.equal(listed, all);
    const gone = await wirePush(
      target,
      names.map((ref) => ({ ref, before: head })),
      null,
    );
    assert.deepEqual([gone.refs.size, new Set(gone.refs.values())], [MANY_REFS, new Set(['ok'])]);
    assert.equal(await git(work, ['ls-remote', '--heads', url]), `${head}\trefs/heads/main\n`);
  });

  test(`of ${GIT_REFS} refs by git creates them all, and prunes them`, async (context) => {
    const url = await createRepository(strata, ada, 'pruned');
    const work = await newWorkTree(context);
    const head = (await git(work, ['rev-parse', 'HEAD'])).trim();
    const names = Array.from({ length: GIT_REFS }, (_, n) => `refs/tags/v${n}`).toSorted();
    await createRefs(work, names, head);
    await git(work, ['push', '--quiet', '--mirror', url]);
    const all = ['refs/heads/main', ...names].map((name) => `${head}\t${name}\n`).join('');
    assert.equal(await git(work, ['ls-remote', '--refs', url]), all);
    await rm(path.join(work, '.git/packed-refs'));
    await git(work, ['update-ref', 'refs/heads/main', head]);
    await git(work, ['push', '--quiet', '--mirror', url]);
    assert.equal(await git(work, ['ls-remote', '--refs', url]), `${head}\trefs/heads/main\n`);
  });

  test('of a file of 100 MB survives a push and a clone', async (context) => {
    const url = await createRepository(strata, ada, 'large');
    const work = await newWorkTree(context);
    const content = randomBytes(LARGE_BYTES);
    // Random bytes do not compress, so git need not try.
    for (const setting of ['core.compression', 'pack.compression']) await git(work, ['config', setting, '0']);
    const blob = (await git(work, ['hash-object', '-w', '--stdin'], content)).trim();
    await git(work, ['update-index', '--add', '--cacheinfo', `100644,${blob},large`]);
    await git(work, ['commit', '--quiet', '-m', 'Large']);
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--bare', url, 'copy.git']);
    assert.equal((await git(path.join(clones, 'copy.git'), ['rev-parse', 'HEAD:large'])).trim(), blob);
    await git(path.join(clones, 'copy.git'), ['cat-file', '-e', blob]);
    const contents = await api(strata, ada.token, 'GET', '/v1/repos/ada/large/contents/large');
    assert.equal(contents.status, 403, 'files above 64 MiB are not shown');
  });

  test('of odd names keeps them, byte for byte', async (context) => {
    const url = await createRepository(strata, ada, 'odd');
    const work = await newWorkTree(context);
    const blob = (await git(work, ['hash-object', '-w', '--stdin'], 'odd\n')).trim();
    const files = [
      ...[
        'with space',
        ' leading',
        'trailing ',
        'quote"quote',
        "apostrophe'",
        'back\\slash',
        'tab\there',
        'line\nfeed',
      ],
      ...[
        'ünïcödé/datei',
        'u\u0308',
        '日本語/ファイル',
        'emoji 🐙',
        '-dash',
        '--option=x',
        '%2e%2e',
        'a:b',
        'q?x=1#y',
        'con',
        'nul.txt',
      ],
      `${'deep/'.repeat(40)}file`,
    ];
    const listing = files.map((name) => `100644 ${blob}\t${name}\0`).join('');
    // Names are bytes; these two are not UTF-8.
    const raw = Buffer.concat([Buffer.from(listing), Buffer.from(`100644 ${blob}\t`), Buffer.from([0xff, 0xfe, 0])]);
    await git(work, ['update-index', '-z', '--index-info'], raw);
    await git(work, ['commit', '--quiet', '-m', 'Odd names']);
    const branches = [
      'ünïcödé',
      'u\u0308',
      '日本語',
      'emoji-🐙',
      'a@b',
      '$(id)',
      "it's",
      'UPPER',
      'upper',
      'con',
      '%41',
      'a/b/c',
    ];
    for (const branch of branches) await git(work, ['branch', branch]);
    await git(work, ['tag', '-a', '-m', 'ünïcödé', 'v1-ü']);
    await git(work, ['push', '--quiet', url, 'refs/heads/*', 'refs/tags/*']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--mirror', url, 'back.git']);
    const back = path.join(clones, 'back.git');
    for (const args of [['for-each-ref'], ['ls-tree', '-r', '-z', 'main']]) {
      assert.equal(await git(back, args), await git(work, args));
    }
    await git(back, ['fsck', '--full', '--strict']);
    for (const name of files) {
      const target = name.split('/').map(encodeURIComponent).join('/');
      const read = await api(
        strata,
        ada.token,
        'GET',
        `/v1/repos/ada/odd/contents/${target}?ref=${encodeURIComponent('日本語')}`,
      );
      assert.equal(read.status, 200, `${name}: ${read.text}`);
      assert.deepEqual([(read.body as { path: string }).path, (read.body as { sha: string }).sha], [name, blob]);
    }
  });

  test('with submodules is accepted, and its contents show where they point', async (context) => {
    const url = await createRepository(strata, ada, 'parent');
    const work = await newWorkTree(context);
    const pinned = createHash('sha1').update('elsewhere').digest('hex');
    const modules = '[submodule "lib"]\n\tpath = lib\n\turl = https://example.org/lib.git\n';
    await commitFile(work, '.gitmodules', modules);
    await git(work, ['update-index', '--add', '--cacheinfo', `160000,${pinned},lib`]);
    await git(work, ['commit', '--quiet', '-m', 'Pin lib']);
    await git(work, ['push', '--quiet', url, 'main']);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', url, 'copy']);
    const status = await git(path.join(clones, 'copy'), ['submodule', 'status']);
    assert.equal(status, `-${pinned} lib\n`);
    const folder = await api(strata, ada.token, 'GET', '/v1/repos/ada/parent/contents');
    const { entries } = folder.body as { entries: { name: string; type: string; sha: string }[] };
    const entry = entries.find(({ name }) => name === 'lib');
    assert.deepEqual([entry?.type, entry?.sha], ['submodule', pinned]);
  });

  test('and a fetch give the same result in every transfer coding of git', async (context) => {
    const url = await createRepository(strata, ada, 'coded');
    const work = await newWorkTree(context);
    const clones = await tempDir(context);
    await git(work, ['push', '--quiet', url, 'main']);
    await git(clones, ['clone', '--quiet', url, 'copy']);
    const copy = path.join(clones, 'copy');
    const codings: readonly (readonly string[])[] = [
      ['http.postBuffer=1'],
      ['http.postBuffer=65536'],
      ['http.extraHeader=Expect: 100-continue', 'http.postBuffer=1'],
      ['http.version=HTTP/1.1', 'http.extraHeader=Connection: close'],
      ['protocol.version=0', 'http.postBuffer=1'],
      ['pack.packSizeLimit=1m', 'core.compression=9'],
    ];
    for (const [round, coding] of codings.entries()) {
      const options = coding.flatMap((setting) => ['-c', setting]);
      const blob = (await git(work, ['hash-object', '-w', '--stdin'], randomBytes(2 * 1024 * 1024))).trim();
      await git(work, ['update-index', '--add', '--cacheinfo', `100644,${blob},file-${round}`]);
      await git(work, ['commit', '--quiet', '-m', `Round ${round}`]);
      await git(work, [...options, 'push', '--quiet', url, 'main']);
      // Many commits of its own make the client's fetch request long, so that git compresses it.
      for (let own = 0; own < 30; own += 1)
        await git(copy, ['commit', '--quiet', '--allow-empty', '-m', `${round} ${own}`]);
      // git fails a fetch whose buffer is smaller than one packet, with a BUG message of its own.
      const buffered = options.filter((option) => option !== '-c' && !option.startsWith('http.postBuffer'));
      await git(copy, [...buffered.flatMap((setting) => ['-c', setting]), 'fetch', '--quiet', 'origin']);
      assert.equal(await git(copy, ['rev-parse', 'origin/main']), await git(work, ['rev-parse', 'main']));
    }
    await git(copy, ['fsck', '--full']);
    const left = await tryGit(work, ['push', '--quiet', '--dry-run', url, ':main']);
    assert.equal(left.code, 0, left.stderr);
  });
});
