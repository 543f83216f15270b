/** A sample of backups and restores: the embedded database, with layers in a folder (backup.long.test.ts has more). */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { madeDataDir } from '../support/made-data-dir.ts';
import { tempDir } from '../support/temp-dir.ts';
import { backUpAndRestore, embeddedService, script } from './backup.ts';

test('a service that was saved under load is restored, whatever was signed, erased, purged and swept until its end', {
  timeout: 180_000,
}, async (context) => {
  const seed = Number(process.env['STRATA_BACKUP_SEED'] ?? Date.now() % 2 ** 31);
  await backUpAndRestore(context, embeddedService(await madeDataDir(context)), seed);
});

test('with EventStoreDB as the log both scripts end before their first step, and name the chapter', async (context) => {
  const folder = await tempDir(context);
  const env = {
    PATH: process.env['PATH'] ?? '',
    STRATA_DATA_DIR: path.join(folder, 'data'),
    STRATA_EVENT_STORE: 'eventstoredb',
    STRATA_EVENTSTORE_URL: 'esdb://127.0.0.1:9?tls=false',
  };
  for (const name of ['backup.sh', 'restore.sh']) {
    const { code, stderr } = await script(name, env, [path.join(folder, 'backup')]);
    assert.equal(code, 1);
    assert.match(stderr, /nothing was done\. See docs\/operating\.md, Backup and restore/);
  }
  assert.deepEqual(await readdir(folder), []);
});
