import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, test } from 'vitest';
import { cleanUp, type Ending } from '../support/cleanup.ts';
import { NO_PROC } from '../support/git-below.ts';
import { skippedFor } from '../support/skipped.ts';
import { tempDir } from '../support/temp-dir.ts';
import type { Service } from './service.ts';
import { createWatch, MEMORY_BYTES_MAX } from './watch.ts';

interface Told {
  faults: string[];
  memory: number;
  metrics: string;
  isRunning: boolean;
}

/** A service that shows what the test says. */
async function pretend(context: Ending): Promise<{ readonly service: Service; readonly told: Told }> {
  const told: Told = { faults: [], memory: 1, metrics: '', isRunning: true };
  const server = createServer((_, response) => response.end(told.metrics)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, () => void server.close());
  const { port } = server.address() as AddressInfo;
  const service: Service = {
    ...{ url: `http://127.0.0.1:${port}`, port, pid: process.pid, dataDir: await tempDir(context), env: {} },
    isRunning: () => told.isRunning,
    takeFaults: () => told.faults.splice(0),
    memoryBytes: () => told.memory,
    descriptors: () => 0,
  };
  return { service, told };
}

describe('The watch of a fuzz run', skippedFor(NO_PROC), () => {
  test('says nothing of a server in order', async (context) => {
    const { service, told } = await pretend(context);
    told.metrics = 'strata_faults_total{what="x"} 0\n';
    assert.deepEqual(await createWatch(service).lookQuiet(), []);
  });

  test('tells of lines in the log, of the end of the process and of memory', async (context) => {
    const { service, told } = await pretend(context);
    const watch = createWatch(service);
    told.faults.push('{"level":50,"msg":"A request failed"}');
    assert.match(watch.look().join(), /in the log: .*A request failed/);
    told.memory = MEMORY_BYTES_MAX;
    assert.deepEqual(watch.look(), []);
    told.memory += 1;
    assert.match(watch.look().join(), /holds 1024 MiB/);
    told.isRunning = false;
    assert.match(watch.look().join(), /has ended/);
  });

  test('tells once of each value of a counter of faults', async (context) => {
    const { service, told } = await pretend(context);
    const watch = createWatch(service);
    told.metrics = 'strata_stray_failures_total 1\nstrata_faults_total{what="flush"} 2\nother 3\n';
    assert.equal((await watch.lookQuiet()).length, 2);
    assert.deepEqual(await watch.lookQuiet(), []);
    told.metrics = 'strata_stray_failures_total 2\n';
    assert.equal((await watch.lookQuiet()).length, 1);
  });

  test('tells of files that stay behind', async (context) => {
    const { service } = await pretend(context);
    const folder = path.join(service.dataDir, 'cache/incoming/push-1');
    await mkdir(folder, { recursive: true });
    await writeFile(path.join(folder, 'received.pack'), '');
    assert.match(
      (await createWatch(service, { quietSpanMs: 100 }).lookQuiet()).join(),
      /left behind: .*received\.pack/,
    );
  });
});
