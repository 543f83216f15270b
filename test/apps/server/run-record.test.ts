/** How the server's processes ended on a data directory. */
import assert from 'node:assert/strict';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { createMetrics } from '../../../apps/server/metrics.ts';
import { openRunRecord } from '../../../apps/server/run-record.ts';
import { keepLog } from '../../support/log.ts';
import { tempDir } from '../../support/temp-dir.ts';

const AT = '2030-01-01T00:00:00.000Z';
const open = (folder: string, log = keepLog()) => openRunRecord(folder, { now: () => AT, log });

test('The first start has no end before it, and one after a stop is no restart', async (context) => {
  const folder = await tempDir(context);
  const first = open(folder);
  assert.deepEqual([first.lastEnd, first.restarts], [null, 0]);
  first.begin();
  first.end('stopped');
  const second = open(folder);
  assert.deepEqual([second.lastEnd, second.restarts], [{ reason: 'stopped', at: AT }, 0]);
  assert.deepEqual(await readdir(folder), ['run-record.json']);
});

test('A process that ends without a word has died, and each such end is a restart', async (context) => {
  const folder = await tempDir(context);
  for (let restarts = 0; restarts < 3; restarts += 1) {
    const record = open(folder);
    assert.equal(record.restarts, restarts);
    record.begin();
  }
  assert.equal(open(folder).lastEnd?.reason, 'died');
});

test('A start that fails leaves the record of the process before it', async (context) => {
  const folder = await tempDir(context);
  const served = open(folder);
  served.begin();
  served.end('uncaught-exception');
  for (let tries = 0; tries < 3; tries += 1) {
    const { lastEnd, restarts } = open(folder);
    assert.deepEqual([lastEnd?.reason, restarts], ['uncaught-exception', 1]);
  }
});

test('The metrics say how the process before ended, and count its failures on', async (context) => {
  const folder = await tempDir(context);
  const before = open(folder);
  before.begin();
  before.noteStray('rejection');
  before.noteStray('exception');
  before.end('uncaught-exception');
  const metrics = createMetrics();
  metrics.runs(open(folder));
  metrics.stray('rejection');
  const text = await metrics.text();
  assert.match(text, /^strata_stray_failures_total\{kind="rejection"\} 2$/m);
  assert.match(text, /^strata_stray_failures_total\{kind="exception"\} 1$/m);
  assert.match(text, /^strata_restarts_total 1$/m);
  assert.match(text, /^strata_last_end\{reason="uncaught-exception"\} 1$/m);
  assert.match(text, /^strata_last_end\{reason="stopped"\} 0$/m);
});

test('A record that cannot be read or written stops no start', async (context) => {
  const folder = await tempDir(context);
  await writeFile(path.join(folder, 'run-record.json'), '{"version":1,"restarts":-1}');
  const log = keepLog();
  const record = open(folder, log);
  assert.deepEqual([record.lastEnd, record.restarts, record.strays], [null, 0, { rejection: 0, exception: 0 }]);
  await mkdir(path.join(folder, 'run-record.json.draft'));
  record.begin();
  record.end('stopped');
  assert.equal(log.lines.length, 3);
});
