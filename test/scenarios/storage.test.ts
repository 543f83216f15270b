/** What `strata-admin storage` reports about an intact layer store, and about a damaged one. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import type { ExpiryReport } from '../../apps/admin/expire-storage.ts';
import type { ListedStorage, StorageFault, StorageReport } from '../../apps/admin/storage.ts';
import { RETENTION_DAYS_DEFAULT } from '../../apps/server/settings.ts';
import { ORPHANED_LAYER_SPAN_MS, REPLACED_LAYERS_KEPT_MS_MIN } from '../../core/kernel/limits.ts';
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
  tryAdmin,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');

describe('strata-admin storage', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;
  /** The ids of the repositories by name. */
  const ids = new Map<string, string>();

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
    const work = await newWorkTree(ending);
    for (const name of ['flipped', 'missing', 'orphan', 'deleted', 'empty']) {
      const url = await createRepository(strata, ada, name);
      const answer = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`);
      ids.set(name, (answer.body as { id: string }).id);
      if (name === 'empty') continue;
      for (const file of ['first', 'second']) {
        await commitFile(work, file, `${file} of ${name}\n`);
        await git(work, ['push', '--quiet', url, 'main']);
      }
    }
    await api(strata, ada.token, 'DELETE', '/v1/repos/ada/deleted');
  });

  async function layersOf(name: string): Promise<readonly string[]> {
    const folder = path.join('repositories', ids.get(name) ?? '', 'layers');
    return (await filesBelow(path.join(shared.layersDir, folder))).map((file) => path.join(folder, file)).sort();
  }
  const inStore = (key: string): string => path.join(shared.layersDir, key);

  async function verify(...args: string[]): Promise<{ code: number | null; report: StorageReport }> {
    const { code, stdout } = await tryAdmin(strata, ['--json', 'storage', 'verify', ...args]);
    return { code, report: JSON.parse(stdout) as StorageReport };
  }

  test('list shows every repository with its stored layers and bytes', async () => {
    const listed = (await admin(strata, ['storage', 'list'])) as { repositories: ListedStorage[]; layers: number };
    assert.equal(listed.layers, 8);
    assert.deepEqual(
      listed.repositories.map(({ repository, deleted, layers }) => [repository, deleted, layers]),
      [
        ['ada/deleted', true, 2],
        ['ada/empty', false, 0],
        ['ada/flipped', false, 2],
        ['ada/missing', false, 2],
        ['ada/orphan', false, 2],
      ],
    );
    const [, , flipped] = listed.repositories;
    const files = await Promise.all((await layersOf('flipped')).map((key) => readFile(inStore(key))));
    assert.equal(
      flipped?.size_bytes,
      files.reduce((sum, { length }) => sum + length, 0),
    );
    assert.equal(flipped?.id, ids.get('flipped'));
  });

  test('verify finds no fault in an intact store', async () => {
    const { code, report } = await verify();
    assert.deepEqual([code, report.repositories, report.layers, report.faults, report.fault_count], [0, 5, 8, [], 0]);
  });

  test('verify names each layer that is damaged, missing or unknown, and lists those of pushes under way apart', async () => {
    const [flipped = '', cut = ''] = await layersOf('flipped');
    const bytes = await readFile(inStore(flipped));
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = (bytes[middle] ?? 0) ^ 0x01;
    await writeFile(inStore(flipped), bytes);
    await writeFile(inStore(cut), (await readFile(inStore(cut))).subarray(0, 1_000));
    const [missing = ''] = await layersOf('missing');
    await rm(inStore(missing));
    const [source = ''] = await layersOf('orphan');
    const orphan = `${path.dirname(source)}/${randomUUID()}.tar`;
    const stranger = `repositories/${randomUUID()}/layers/${randomUUID()}.tar`;
    await mkdir(path.dirname(inStore(stranger)), { recursive: true });
    for (const key of [orphan, stranger]) await copyFile(inStore(source), inStore(key));

    const { code, report } = await verify();
    const found = report.faults.map(({ kind, repository, what }: StorageFault) => [kind, repository, what]);
    assert.deepEqual(
      found.sort(byText),
      [
        ['damaged', 'ada/flipped', flipped],
        ['damaged', 'ada/flipped', cut],
        ['missing', 'ada/missing', missing],
        ['unknown', null, stranger],
      ].sort(byText),
    );
    assert.deepEqual([code, report.fault_count], [1, 4]);
    const [unnamed] = report.unnamed;
    assert.deepEqual([unnamed?.repository, unnamed?.key, report.unnamed_count], ['ada/orphan', orphan, 1]);
    const keptMs = Date.parse(unnamed?.removed_after ?? '') - Date.parse(unnamed?.stored_at ?? '');
    assert.equal(keptMs, ORPHANED_LAYER_SPAN_MS);

    const one = await verify('--repository', 'ada/missing');
    assert.equal(one.code, 1);
    assert.deepEqual(
      one.report.faults.map(({ kind, what }) => [kind, what]),
      [['missing', missing]],
    );

    const people = await tryAdmin(strata, ['storage', 'verify', '--repository', 'ADA/orphan']);
    assert.equal(people.code, 0, 'a push may be under way, so it is no fault');
    assert.match(people.stdout, new RegExp(`^unnamed ada/orphan ${orphan} is named by no event.*\n1 repositories`));
  });

  test('verify refuses a repository that does not exist, and exits with a usage error for an invalid name', async () => {
    const gone = await tryAdmin(strata, ['storage', 'verify', '--repository', 'ada/deleted']);
    assert.deepEqual([gone.code, gone.stdout], [1, '']);
    assert.match(gone.stderr, /There is no repository "ada\/deleted"/);
    assert.equal((await tryAdmin(strata, ['storage', 'verify', '--repository', 'ada'])).code, 2);
  });

  test('expire lets a deleted repository go after the retention, which then cannot be restored', async () => {
    const id = ids.get('deleted') ?? '';
    const clockFile = path.join(await tempDir(ending), 'ahead-ms');
    const clock = { NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile };
    const expire = async (aheadMs: number): Promise<ExpiryReport> => {
      await writeFile(clockFile, String(aheadMs));
      return (await admin({ env: { ...strata.env, ...clock } }, ['storage', 'expire'])) as ExpiryReport;
    };
    const retentionMs = RETENTION_DAYS_DEFAULT * 24 * 60 * 60_000;
    const nothing = {
      expired: { repositories: 0, layers: 0, size_bytes: 0 },
      removed: 0,
      leftovers: { incoming: 0, layers: 0 },
      pruned: 0,
      delivery_bodies: 0,
    };
    assert.deepEqual(await expire(retentionMs - 60 * 60_000), nothing);
    const report = await expire(retentionMs);
    assert.deepEqual([report.expired.repositories, report.expired.layers, report.removed], [1, 2, 0]);
    assert.ok(report.expired.size_bytes > 0);
    assert.deepEqual(await expire(retentionMs + REPLACED_LAYERS_KEPT_MS_MIN), { ...nothing, removed: 2 });
    assert.deepEqual(await layersOf('deleted'), []);
    const answer = await api(strata, ada.token, 'POST', `/v1/repositories/${id}/restore`);
    assert.equal(answer.status, 410, JSON.stringify(answer.body));
  });
});

function byText(a: readonly (string | null)[], b: readonly (string | null)[]): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}
