/** Exports and imports of a log that are killed, fed with damaged files, or run beside a server. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'vitest';
import { headerLine, LOG_FILE_VERSION } from '../../core/use-cases/log-files/log-file.ts';
import { newEvent, newStream } from '../support/events.ts';
import {
  filledInstallation,
  type Installation,
  killedAt,
  newInstallation,
  onLog,
  query,
  refusedWith,
  textOf,
} from '../support/installations.ts';
import { fillOddLog } from '../support/log-files.ts';
import { eventually } from '../support/processes.ts';
import { admin, createAccount, startStrata, tryAdmin } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const ADMIN = path.resolve(import.meta.dirname, '../../apps/admin/main.ts');

/**
 * Returns the settings of another server on the same database. It needs a data directory of its own, since a data
 * directory belongs to one server and the import locks its own.
 */
async function elsewhere(context: TestContext, installation: Installation): Promise<Installation['env']> {
  return { ...installation.env, STRATA_DATA_DIR: await tempDir(context) };
}

describe('An import', () => {
  test('that is killed at any step continues when it is run again, and no server starts on the log before it is complete', async (context) => {
    const source = await filledInstallation(context, 1_300);
    const file = path.join(await tempDir(context), 'log');
    await admin(source, ['log', 'export', file]);
    const whole = await textOf(source);
    assert.equal(await readFile(file, 'utf8'), whole);
    const installation = await newInstallation(context);
    for (const [point, events] of [
      ['log-import-begun', 0],
      ['log-import-appended', 500],
      ['log-import-appended', 1_000],
      ['log-import-verified', 1_300],
    ] as const) {
      // A batch ends with a whole append, of three events at most.
      const most = Math.min(events + (events / 500) * 2, 1_300);
      await killedAt(installation, point, ['log', 'import', file]);
      const held = await textOf(installation);
      const count = held.split('\n').length - 3;
      assert.ok(count >= events && count <= most, `${point}: ${count} events`);
      assert.ok(whole.startsWith(held.split('\n').slice(0, -2).join('\n')), point);
    }
    refusedWith(await tryAdmin(installation, ['projections', 'rebuild']), /import into this log was not finished/);
    await assert.rejects(startStrata(context, { env: installation.env }), /import into this log was not finished/);
    const report = (await admin(installation, ['log', 'import', file])) as { events: number; found: number };
    assert.deepEqual([report.events, report.found], [1_300, 1_300]);
    assert.equal(await textOf(installation), whole);
    assert.equal((await tryAdmin(installation, ['log', 'export', '-'])).stdout, whole);
  });

  test('reads standard input, and refuses a file that ends early until it gets the whole file', async (context) => {
    const source = await filledInstallation(context, 700);
    const exported = await tryAdmin(source, ['log', 'export', '-']);
    assert.equal(exported.code, 0, exported.stderr);
    const installation = await newInstallation(context);
    const cut = exported.stdout.slice(0, exported.stdout.lastIndexOf('\n', exported.stdout.length - 2) - 10);
    refusedWith(await tryAdmin(installation, ['log', 'import', '-'], cut), /Line 701: cut off/);
    refusedWith(await tryAdmin(installation, ['log', 'verify']), /not finished/);
    refusedWith(await tryAdmin(installation, ['log', 'import', '-'], cut), /Line 701: cut off/);
    const done = await tryAdmin(installation, ['log', 'import', '-'], exported.stdout);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(await textOf(installation), exported.stdout);
  });

  test('refuses while a server runs on the target, embedded or not', async (context) => {
    const file = path.join(await tempDir(context), 'log');
    await admin(await filledInstallation(context, 5), ['log', 'export', file]);
    const installation = await newInstallation(context);
    const server = await startStrata(context, { env: await elsewhere(context, installation) });
    refusedWith(await tryAdmin(installation, ['log', 'import', file]), /stop it first/);
    await server.stop();
    const beside = await startStrata(context, { env: installation.env });
    refusedWith(await tryAdmin(installation, ['log', 'import', file]), /runs on/);
    await beside.stop();
    const embedded = await startStrata(context);
    refusedWith(await tryAdmin(embedded, ['log', 'import', file]), /runs on/);
    await embedded.stop();
    assert.equal(((await admin(embedded, ['log', 'import', file])) as { events: number }).events, 5);
  });

  test('refuses when a server started while the import was still reading', async (context) => {
    const exported = (await tryAdmin(await filledInstallation(context, 5), ['log', 'export', '-'])).stdout;
    const installation = await newInstallation(context);
    const child = spawn(process.execPath, [ADMIN, 'log', 'import', '-'], {
      env: installation.env,
      stdio: 'pipe',
    });
    const ended = once(child, 'close');
    const said = text(child.stderr);
    child.stdin.write(exported.slice(0, -10));
    const claimed = `SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'strata import'`;
    await eventually(
      'the import has its claim',
      async () => Number((await query(installation, claimed))[0]?.['n']) > 1,
    );
    const server = await startStrata(context, { env: await elsewhere(context, installation) });
    child.stdin.end(exported.slice(-10));
    assert.deepEqual(await ended, [1, null]);
    assert.match(await said, /stop it first/);
    assert.deepEqual(await query(installation, 'SELECT FROM events'), []);
    // The server keeps running, and can be restarted.
    await createAccount(await server.restart(), 'ada');
  });

  test('refuses a log that already holds something else', async (context) => {
    const file = path.join(await tempDir(context), 'log');
    await admin(await filledInstallation(context, 5), ['log', 'export', file]);
    const installation = await newInstallation(context);
    await onLog(installation, (store) => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] }));
    refusedWith(await tryAdmin(installation, ['log', 'import', file]), /Line 2: the target holds repository-/);
    // The refusal changed nothing, so the log may still be served.
    assert.equal((await tryAdmin(installation, ['log', 'export', '-'])).code, 0);
  });
});

describe('An export', () => {
  test('that is killed leaves no file under the final name, and continues after its last complete line', async (context) => {
    const installation = await filledInstallation(context, 350);
    const file = path.join(await tempDir(context), 'log');
    await killedAt(installation, 'log-export-written', ['log', 'export', file]);
    await assert.rejects(stat(file), { code: 'ENOENT' });
    assert.equal(await readFile(`${file}.partial`, 'utf8'), `${headerLine(LOG_FILE_VERSION)}\n`);
    await onLog(installation, (store) => fillOddLog(store, 20));
    const whole = await textOf(installation);
    // What an interrupted writer may leave: a partial line, blocks of zeros, even the end of a smaller log.
    const lines = whole.split('\n').slice(0, -1);
    for (const [kept, rest] of [
      [200, ''],
      [200, lines[200]?.slice(0, 50)],
      [250, '\0'.repeat(4_096)],
      [300, `${lines.at(-1)}\n`],
    ] as const) {
      await writeFile(`${file}.partial`, `${lines.slice(0, kept).join('\n')}\n${rest}`);
      const report = (await admin(installation, ['log', 'export', file])) as { resumed: number; events: number };
      assert.deepEqual([report.events, report.resumed], [370, kept - 1]);
      assert.equal(await readFile(file, 'utf8'), whole);
      await assert.rejects(stat(`${file}.partial`), { code: 'ENOENT' });
      refusedWith(await tryAdmin(installation, ['log', 'export', file]), /exists/);
      await rm(file);
    }
    await writeFile(`${file}.partial`, whole);
    await truncate(`${file}.partial`, whole.length - 200);
    refusedWith(await tryAdmin(await filledInstallation(context, 3), ['log', 'export', file]), /does not hold/);
  });

  test('beside a running server holds every write answered before it began', async (context) => {
    const server = await startStrata(context, { env: (await newInstallation(context)).env });
    const ada = await createAccount(server, 'ada');
    const exported = await tryAdmin(server, ['log', 'export', '-']);
    assert.match(exported.stdout, new RegExp(ada.id));
    assert.match(exported.stderr, /Exported \d+ events, digest [0-9a-f]{64}/);
    assert.equal((await tryAdmin(server, ['--json', 'log', 'export', '-'])).code, 2);
  });
});
