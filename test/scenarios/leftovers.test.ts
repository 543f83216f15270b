/** What crashes leave in the store of layers: it is listed with its account, and `storage expire` removes it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import type { ExpiryReport } from '../../apps/admin/expire-storage.ts';
import type { StorageReport } from '../../apps/admin/storage.ts';
import { UNNAMED_LAYER_SPAN_MS } from '../../core/kernel/limits.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import {
  type Account,
  admin,
  api,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  tryAdmin,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';

const DYING_PUT = path.resolve(import.meta.dirname, '../support/dying-put.ts');

describe('What crashes left', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
  });

  async function newRepository(name: string): Promise<{ readonly id: string; readonly account: string }> {
    await createRepository(strata, ada, name);
    const { body } = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`);
    const { id } = body as { readonly id: string };
    const created = (await shared.log.since()).find(
      ({ type, data }) => type === 'RepositoryCreated' && data['repository_id'] === id,
    );
    return { id, account: created?.accountId ?? '' };
  }

  const inStore = (key: string): string => path.join(shared.layersDir, key);
  const incoming = (): Promise<string[]> => readdir(inStore('.incoming'));
  const keyOf = (repository: string): string => `repositories/${repository}/layers/${randomUUID()}.tar`;
  const expire = async () => (await admin(strata, ['storage', 'expire'])) as ExpiryReport;

  async function verify(): Promise<StorageReport> {
    const { stdout } = await tryAdmin(strata, ['--json', 'storage', 'verify']);
    return JSON.parse(stdout) as StorageReport;
  }

  /** Begins a put in a process of its own, and resolves when half of it is written. */
  async function beginPut(repository: string): Promise<ChildProcess> {
    const writer = spawn(process.execPath, [DYING_PUT, shared.layersDir, keyOf(repository)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    cleanUp(ending, () => void writer.kill('SIGKILL'));
    await once(writer.stdout, 'data');
    return writer;
  }

  async function kill(writer: ChildProcess): Promise<void> {
    const ended = once(writer, 'exit');
    writer.kill('SIGKILL');
    await ended;
  }

  test('thirty kills leave no half-written file after the next expiry, and what a living process writes stays', async () => {
    const { id, account } = await newRepository('killed');
    for (let n = 0; n < 30; n += 1) await kill(await beginPut(id));
    const living = await beginPut(id);
    const stranger = `${process.pid}-${'0'.repeat(32)}~${randomUUID()}~repositories~${id}~layers~${randomUUID()}.tar`;
    await writeFile(inStore(path.join('.incoming', stranger)), 'of another machine');
    assert.equal((await incoming()).length, 32);

    const report = await verify();
    assert.deepEqual([report.incoming_count, report.fault_count], [30, 0]);
    assert.partialDeepStrictEqual(report.incoming[0], { repository: 'ada/killed', account, size_bytes: 1_000 });
    const people = await tryAdmin(strata, ['storage', 'verify']);
    assert.match(people.stdout, new RegExp(`^incoming ada/killed .* 1000 bytes.*\\(account ${account}\\)$`, 'm'));

    assert.deepEqual((await expire()).leftovers, { incoming: 30, layers: 0 });
    assert.deepEqual((await incoming()).length, 2, 'that of the living process, and that of another machine');
    await kill(living);
    const dayOld = new Date(Date.now() - 25 * 60 * 60_000);
    await utimes(inStore(path.join('.incoming', stranger)), dayOld, dayOld);
    await expire();
    assert.deepEqual(await incoming(), []);
  });

  test('a stored layer stays as long as an append may name it, also where nothing was pushed before', async () => {
    const { id, account } = await newRepository('pushed');
    const { id: empty } = await newRepository('empty');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await urlOf('pushed'), 'main']);
    const [named = ''] = await filesBelow(inStore(`repositories/${id}/layers`));
    const source = inStore(`repositories/${id}/layers/${named}`);
    const [old, young, inEmpty, unknown] = [keyOf(id), keyOf(id), keyOf(empty), keyOf(randomUUID())];
    for (const [key, ageMs] of [
      [old, UNNAMED_LAYER_SPAN_MS + 1_000],
      [young, UNNAMED_LAYER_SPAN_MS - 60_000],
      [inEmpty, UNNAMED_LAYER_SPAN_MS + 1_000],
      [unknown, UNNAMED_LAYER_SPAN_MS + 1_000],
    ] as const) {
      await mkdir(path.dirname(inStore(key)), { recursive: true });
      await copyFile(source, inStore(key));
      const at = new Date(Date.now() - ageMs);
      await utimes(inStore(key), at, at);
    }
    const before = await verify();
    assert.deepEqual(
      new Map(before.unnamed.map(({ account: of, key }) => [key, of])),
      new Map([old, young, inEmpty].map((key) => [key, account])),
    );
    assert.deepEqual((await expire()).leftovers, { incoming: 0, layers: 2 });
    const left = await filesBelow(inStore('repositories'));
    const expected = [`repositories/${id}/layers/${named}`, young, unknown];
    assert.deepEqual(
      left.filter((file) => file.endsWith('.tar')).sort(),
      expected.map((key) => path.relative('repositories', key)).sort(),
      'the log does not know the repository of the last one',
    );
  });

  test('layers that a purge let go are said to leave, and not to be those of a push that died', async () => {
    const { id, account } = await newRepository('purged');
    const work = await newWorkTree(ending);
    await git(work, ['push', '--quiet', await urlOf('purged'), 'main', 'main:gone']);
    await git(work, ['commit', '--quiet', '--allow-empty', '--message', 'more']);
    await git(work, ['push', '--quiet', await urlOf('purged'), 'main:gone']);
    await git(work, ['push', '--quiet', await urlOf('purged'), ':gone']);
    const purged = await api(strata, ada.token, 'POST', `/v1/repositories/${id}/purge`, {});
    assert.equal(purged.status, 202, purged.text);
    const { unnamed, leaving, leaving_count: count } = await verify();
    assert.deepEqual(
      unnamed.filter(({ repository }) => repository === 'ada/purged'),
      [],
    );
    assert.equal(count, 2);
    assert.partialDeepStrictEqual(leaving[0], { repository: 'ada/purged', account });
    const people = await tryAdmin(strata, ['storage', 'verify', '--repository', 'ada/purged']);
    assert.match(people.stdout, /^leaving ada\/purged .* was let go by a purge/m);
  });

  async function urlOf(name: string): Promise<string> {
    const url = new URL(`${strata.url}/r/ada/${name}.git`);
    return Object.assign(url, { username: 'ada', password: ada.token }).href;
  }
});
