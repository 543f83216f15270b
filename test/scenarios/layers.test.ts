/**
 * The server reads objects from layers on disk, and the cache is only a copy: it names damaged layers and never serves
 * them, rebuilds a lost cache, and deletes no layer with its repository.
 */
import assert from 'node:assert/strict';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('Layers', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
  });

  // The server may still write to the cache after an answer, while the test removes it.
  const dropCache = (): Promise<void> =>
    rm(path.join(strata.dataDir, 'cache'), { recursive: true, force: true, maxRetries: 10 });

  async function layersOf(name: string): Promise<readonly string[]> {
    const found = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`);
    const { id } = found.body as { id: string };
    const folder = path.join(shared.layersDir, 'repositories', id, 'layers');
    return (await filesBelow(folder)).map((file) => path.join(folder, file));
  }

  test('that are damaged are named and never served', async (context) => {
    const work = await newWorkTree(context);
    const other = await createRepository(strata, ada, 'unharmed');
    await git(work, ['push', '--quiet', other, 'main']);
    const url = await createRepository(strata, ada, 'damaged');
    await commitFile(work, 'file', 'content\n'.repeat(1_000));
    await git(work, ['push', '--quiet', url, 'main']);
    const [layer = '', ...more] = await layersOf('damaged');
    assert.deepEqual(more, []);
    const whole = await readFile(layer);
    const id = path.basename(layer, '.tar');
    const flipped = (at: number): Buffer => {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ 0x01;
      return bytes;
    };
    const packAt = whole.indexOf('PACK');
    const damages: readonly (readonly [string, Buffer | null])[] = [
      ['a byte in the pack', flipped(packAt + 20)],
      ['a byte in a header', flipped(packAt - 500)],
      ['a byte near the end', flipped(whole.length - 1_000)],
      ['a missing end', whole.subarray(0, whole.length - 512)],
      ['bytes after the end', Buffer.concat([whole, Buffer.alloc(512)])],
      ['nothing in it', Buffer.alloc(0)],
      ['another layer in its place', await readFile((await layersOf('unharmed'))[0] ?? '')],
      ['no file at all', null],
    ];
    for (const [what, bytes] of damages) {
      if (bytes === null) await rm(layer);
      else await writeFile(layer, bytes);
      await dropCache();
      const logged = strata.log().length;
      const clones = await tempDir(context);
      const cloned = await tryGit(clones, ['clone', url, 'copy']);
      assert.notEqual(cloned.code, 0, what);
      assert.match(cloned.stderr, /503/, what);
      const contents = await api(strata, ada.token, 'GET', '/v1/repos/ada/damaged/contents/file');
      assert.ok(contents.status === 503 || contents.status === 500, `${what}: ${contents.status} ${contents.text}`);
      const lines = strata.log().slice(logged);
      assert.match(lines, new RegExp(`layer-(corrupt|missing).*${id}`), what);
      // Refs need no objects: listing them still works, and so does every other repository.
      assert.match(await git(work, ['ls-remote', url]), /refs\/heads\/main/);
      await git(clones, ['clone', '--quiet', other, 'unharmed']);
      const verified = await admin(strata, ['log', 'verify', '--references']).catch((error: unknown) => error);
      assert.match(String(verified), /exited 1/, what);
    }
    await writeFile(layer, whole);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', url, 'copy']);
    assert.equal(await readFile(path.join(clones, 'copy/file'), 'utf8'), 'content\n'.repeat(1_000));
    const verified = (await admin(strata, ['log', 'verify', '--references'])) as { faults: string[] };
    assert.deepEqual(verified.faults, []);
  });

  test('refill a cache that is deleted while the server runs', async (context) => {
    const url = await createRepository(strata, ada, 'refilled');
    const work = await newWorkTree(context);
    for (let round = 0; round < 3; round += 1) {
      const commit = await commitFile(work, `file-${round}`, `${round}\n`);
      await dropCache();
      await git(work, ['push', '--quiet', url, 'main']);
      await dropCache();
      const clones = await tempDir(context);
      await git(clones, ['clone', '--quiet', url, 'copy']);
      assert.equal((await git(path.join(clones, 'copy'), ['rev-parse', 'HEAD'])).trim(), commit);
      await git(path.join(clones, 'copy'), ['fsck', '--full']);
      await dropCache();
      const read = await api(strata, ada.token, 'GET', `/v1/repos/ada/refilled/contents/file-${round}`);
      assert.equal(read.status, 200, read.text);
      await dropCache();
      const commits = await api(strata, ada.token, 'GET', '/v1/repos/ada/refilled/commits?ref=main');
      assert.equal(commits.status, 200, commits.text);
    }
  });

  test('refill a cache that is deleted during fetches and pushes', async (context) => {
    const url = await createRepository(strata, ada, 'busy');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    let busy = true;
    const dropping = (async () => {
      while (busy) {
        const aside = path.join(strata.dataDir, `gone-${Math.random()}`);
        await rename(path.join(strata.dataDir, 'cache'), aside).catch(() => undefined);
        await rm(aside, { recursive: true, force: true });
        await sleep(200);
      }
    })();
    const clones = await tempDir(context);
    let failures = 0;
    for (let round = 0; round < 8; round += 1) {
      await commitFile(work, 'file', `${round}\n`);
      const pushed = await tryGit(work, ['push', '--quiet', url, 'main']);
      const cloned = await tryGit(clones, ['clone', '--quiet', url, `copy-${round}`]);
      failures += Number(pushed.code !== 0) + Number(cloned.code !== 0);
      // A failure is complete: no clone is wrong, and the next push finds every acknowledged one.
      if (cloned.code === 0) await git(path.join(clones, `copy-${round}`), ['fsck', '--full']);
    }
    busy = false;
    await dropping;
    await context.annotate(`${failures} of 16 failed during it`);
    await git(work, ['push', '--quiet', url, 'main']);
    await git(clones, ['clone', '--quiet', url, 'last']);
    assert.equal(await readFile(path.join(clones, 'last/file'), 'utf8'), '7\n');
  });

  test('stay on disk when their repository is deleted, which disappears immediately', async (context) => {
    const url = await createRepository(strata, ada, 'deleted');
    const work = await newWorkTree(context);
    await git(work, ['push', '--quiet', url, 'main']);
    const files = await layersOf('deleted');
    assert.equal(files.length, 1);
    const usage = async (): Promise<number> => {
      const answer = await api(strata, ada.token, 'GET', '/v1/account/usage');
      return (answer.body as { storage_bytes: { used: number } }).storage_bytes.used;
    };
    const listed = async (): Promise<readonly string[]> => {
      const answer = await api(strata, ada.token, 'GET', '/v1/repositories?limit=100');
      return (answer.body as { repositories: { name: string }[] }).repositories.map(({ name }) => name);
    };
    const before = await usage();
    assert.ok((await listed()).includes('deleted'));
    assert.equal((await api(strata, ada.token, 'DELETE', '/v1/repos/ada/deleted')).status, 204);
    assert.equal((await listed()).includes('deleted'), false);
    for (const target of ['', '/branches', '/commits', '/contents/README']) {
      assert.equal((await api(strata, ada.token, 'GET', `/v1/repos/ada/deleted${target}`)).status, 404, target);
    }
    assert.equal((await api(strata, ada.token, 'DELETE', '/v1/repos/ada/deleted')).status, 404);
    assert.match((await tryGit(work, ['ls-remote', url])).stderr, /Repository not found/);
    assert.match((await tryGit(work, ['push', url, 'main:other'])).stderr, /Repository not found/);
    assert.equal(await usage(), before, 'its storage counts as long as it can be restored');
    for (const file of files) assert.ok((await readFile(file)).length > 0);

    await createRepository(strata, ada, 'deleted');
    assert.equal(await git(work, ['ls-remote', url]), '', 'the new repository is another one');
    await git(work, ['push', '--quiet', url, 'main']);
    const renewed = await layersOf('deleted');
    assert.deepEqual(
      renewed.filter((file) => files.includes(file)),
      [],
    );
    for (const file of files) assert.ok((await readFile(file)).length > 0);
  });
});
