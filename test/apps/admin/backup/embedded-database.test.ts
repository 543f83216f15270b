/** Programs of PostgreSQL that run on the embedded database without a server. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pino } from 'pino';
import { test } from 'vitest';
import { onEmbeddedDatabase } from '../../../../apps/admin/backup/embedded-database.ts';
import { readSettings } from '../../../../apps/server/settings.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { madeDataDir } from '../../../support/made-data-dir.ts';

test('a program gets the address of the embedded database, and no variable of another one', async (context) => {
  Object.assign(process.env, { PGSSLMODE: 'verify-full', PGSERVICE: 'other', PGHOST: 'db.example.org' });
  cleanUp(context, () => {
    for (const name of ['PGSSLMODE', 'PGSERVICE', 'PGHOST']) delete process.env[name];
  });
  const dataDir = await madeDataDir(context);
  const settings = readSettings({ STRATA_DATA_DIR: dataDir }, '/');
  const seen = path.join(dataDir, 'seen');
  const program = ['/bin/sh', '-c', 'env | grep ^PG > "$1"; exit 3', 'sh', seen];
  assert.equal(await onEmbeddedDatabase({ settings, log: pino({ level: 'silent' }) }, program), 3);
  const names = [...(await readFile(seen, 'utf8')).matchAll(/^(\w+)=/gm)].map(([, name = '']) => name).toSorted();
  assert.deepEqual(names, ['PGDATABASE', 'PGHOST', 'PGPASSWORD', 'PGPORT', 'PGUSER']);
  assert.doesNotMatch(await readFile(seen, 'utf8'), /example/);
});
