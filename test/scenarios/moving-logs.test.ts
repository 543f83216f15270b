/** A whole service moved to another database by `strata-admin log export` and `import`, and what may cut that short. */
import assert from 'node:assert/strict';
import { cp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { LOG_FILE_HEADER } from '../../core/use-cases/log-file.ts';
import { cleanUp } from '../support/cleanup.ts';
import { newEvent, newStream } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { exportText, fillOddLog } from '../support/log-files.ts';
import { testDatabase } from '../support/postgres.ts';
import {
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  type Finished,
  git,
  gitUrl,
  newWorkTree,
  startStrata,
  type Strata,
  tryAdmin,
} from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const MASTER_KEY = 'cd'.repeat(32);

interface Place extends Pick<Strata, 'env'> {
  readonly connectionString: string;
}

/** Where a service may be: a new database and data directory, nothing running. */
async function newPlace(context: TestContext): Promise<Place> {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const { connectionString } = database;
  const env = {
    PATH: process.env['PATH'] ?? '',
    STRATA_DATABASE_URL: connectionString,
    STRATA_DATA_DIR: await tempDir(context),
    STRATA_MASTER_KEY: MASTER_KEY,
    STRATA_LOG_LEVEL: 'info',
  };
  return { connectionString, env };
}

/** Does something with the log of a place, and leaves no connection behind: an import takes one for a server. */
async function onLog<Result>(
  { connectionString }: Place,
  work: (store: ReturnType<typeof createPostgresEventStore>) => Promise<Result>,
): Promise<Result> {
  const store = createPostgresEventStore({ connectionString, log: keepLog() });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const textOf = (place: Place): Promise<string> => onLog(place, exportText);

async function query(place: Place, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: place.connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** The same command, killed with SIGKILL at a named step. */
async function killedAt(place: Place, point: string, args: readonly string[]): Promise<void> {
  const killed = await tryAdmin({ env: { ...place.env, STRATA_FAULT_POINT: point } }, args);
  assert.equal(killed.code, null, `${point}: ${killed.stdout}${killed.stderr}`);
}

async function filledPlace(context: TestContext, events: number): Promise<Place> {
  const place = await newPlace(context);
  await onLog(place, (store) => fillOddLog(store, events));
  return place;
}

const refusedWith = (finished: Finished, words: RegExp): void => {
  assert.equal(finished.code, 1, finished.stdout);
  assert.match(finished.stderr, words);
};

describe('Moving a service to another database', () => {
  test('gives the same repositories, read models and tokens there', async (context) => {
    const shared = await sharedParts(context);
    const source = await startNode(context, shared);
    const ada = await createAccount(source, 'ada');
    const work = await newWorkTree(context);
    const url = await createRepository(source, ada, 'moved');
    for (let round = 0; round < 5; round += 1) {
      await commitFile(work, `file-${round}`, `${round}\n`);
      await git(work, ['push', '--quiet', url, 'main', `main:refs/heads/branch-${round}`]);
    }
    await git(work, ['tag', '-a', 'v1', '-m', 'one']);
    await git(work, ['push', '--quiet', url, 'v1', ':branch-0']);
    await createRepository(source, ada, 'empty');
    const reads = ['/v1/repositories', '/v1/repos/ada/moved/branches', '/v1/repos/ada/moved/commits?limit=100'];
    const answersOf = async (strata: Strata): Promise<readonly string[]> => {
      const answers = await Promise.all(reads.map((target) => api(strata, ada.token, 'GET', target)));
      return answers.map(({ text }) => text.replaceAll(strata.url, 'URL'));
    };
    const before = await answersOf(source);
    await source.stop();
    const file = path.join(await tempDir(context), 'log');
    const exported = (await admin(source, ['log', 'export', file])) as { events: number; digest: string };

    const place = await newPlace(context);
    const layers = path.join(await tempDir(context), 'layers');
    await cp(shared.layersDir, layers, { recursive: true });
    const target = {
      ...place,
      env: { ...place.env, STRATA_LAYERS_DIR: layers, STRATA_MASTER_KEY: shared.env['STRATA_MASTER_KEY'] ?? '' },
    };
    await moveVault({ ...source, connectionString: shared.env['STRATA_DATABASE_URL'] ?? '' }, target);
    const imported = await admin(target, ['log', 'import', file]);
    assert.deepEqual(imported, { events: exported.events, found: 0, digest: exported.digest });
    await rm(shared.layersDir, { recursive: true });

    const moved = await startStrata(context, { env: target.env });
    assert.deepEqual(await answersOf(moved), before);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--mirror', gitUrl(moved, ada, 'moved'), 'copy']);
    const refs = ['for-each-ref', '--format=%(refname) %(objectname)'];
    assert.match(await git(path.join(clones, 'copy'), refs), /branch-4/);
    assert.equal(
      await git(path.join(clones, 'copy'), ['rev-parse', 'main', 'v1']),
      await git(work, ['rev-parse', 'main', 'v1']),
    );
    const verified = (await admin(moved, ['projections', 'rebuild', '--verify'])) as {
      projections: { differences: number }[];
    };
    assert.ok(verified.projections.every(({ differences }) => differences === 0));
    const log = (await admin(moved, ['log', 'verify', '--references'])) as { faults: string[] };
    assert.deepEqual(log.faults, []);
    const commit = await commitFile(work, 'after', 'after\n');
    await git(work, ['push', '--quiet', gitUrl(moved, ada, 'moved'), 'main']);
    assert.match(await git(work, ['ls-remote', gitUrl(moved, ada, 'moved'), 'main']), new RegExp(commit));
  });

  test('never serves read models or snapshots of the log that was there before', async (context) => {
    const source = await filledPlace(context, 5);
    const file = path.join(await tempDir(context), 'log');
    await admin(source, ['log', 'export', file]);
    const place = await newPlace(context);
    const server = await startStrata(context, { env: place.env });
    await createAccount(server, 'ada');
    await server.stop();
    // As after a restore of the log alone.
    await query(place, `TRUNCATE events`);
    await query(place, `INSERT INTO snapshots VALUES ('repository-x', 1, 1000, '{}')`);
    const models = `SELECT count(*)::int AS n FROM pg_tables WHERE schemaname = 'read_models'`;
    assert.notEqual((await query(place, models))[0]?.['n'], 0);
    await admin(place, ['log', 'import', file]);
    assert.equal((await query(place, models))[0]?.['n'], 0);
    assert.deepEqual(await query(place, 'SELECT FROM snapshots'), []);
  });
});

async function moveVault(from: Place, to: Place): Promise<void> {
  for (const table of ['vault_keys', 'vault_records']) {
    const [row] = await query(from, `SELECT json_agg(t)::text AS rows FROM ${table} AS t`);
    const client = new pg.Client({ connectionString: to.connectionString });
    await client.connect();
    await client.query(`INSERT INTO ${table} SELECT * FROM json_populate_recordset(NULL::${table}, $1)`, [
      row?.['rows'],
    ]);
    await client.end();
  }
}

describe('An import', () => {
  test('that is killed at any step goes on when it is run again, and nobody serves the log before', async (context) => {
    const source = await filledPlace(context, 1_300);
    const file = path.join(await tempDir(context), 'log');
    await admin(source, ['log', 'export', file]);
    const whole = await textOf(source);
    assert.equal(await readFile(file, 'utf8'), whole);
    const place = await newPlace(context);
    for (const [point, events] of [
      ['log-import-begun', 0],
      ['log-import-appended', 500],
      ['log-import-appended', 1_000],
      ['log-import-verified', 1_300],
    ] as const) {
      await killedAt(place, point, ['log', 'import', file]);
      const held = await textOf(place);
      assert.equal(held.split('\n').length - 3, events, point);
      assert.ok(whole.startsWith(held.split('\n').slice(0, -2).join('\n')), point);
    }
    refusedWith(await tryAdmin(place, ['projections', 'rebuild']), /import into this log was not finished/);
    await assert.rejects(startStrata(context, { env: place.env }), /import into this log was not finished/);
    const report = (await admin(place, ['log', 'import', file])) as { events: number; found: number };
    assert.deepEqual([report.events, report.found], [1_300, 1_300]);
    assert.equal(await textOf(place), whole);
    assert.equal((await tryAdmin(place, ['log', 'export', '-'])).stdout, whole);
  });

  test('reads standard input, and refuses a file that ends early until it gets all of it', async (context) => {
    const source = await filledPlace(context, 700);
    const exported = await tryAdmin(source, ['log', 'export', '-']);
    assert.equal(exported.code, 0, exported.stderr);
    const place = await newPlace(context);
    const cut = exported.stdout.slice(0, exported.stdout.lastIndexOf('\n', exported.stdout.length - 2) - 10);
    refusedWith(await tryAdmin(place, ['log', 'import', '-'], cut), /Line 701: cut off/);
    refusedWith(await tryAdmin(place, ['log', 'verify']), /not finished/);
    refusedWith(await tryAdmin(place, ['log', 'import', '-'], cut), /Line 701: cut off/);
    const done = await tryAdmin(place, ['log', 'import', '-'], exported.stdout);
    assert.equal(done.code, 0, done.stderr);
    assert.equal(await textOf(place), exported.stdout);
  });

  test('refuses while a server works on the target, embedded or not', async (context) => {
    const file = path.join(await tempDir(context), 'log');
    await admin(await filledPlace(context, 5), ['log', 'export', file]);
    const place = await newPlace(context);
    const server = await startStrata(context, { env: place.env });
    refusedWith(await tryAdmin(place, ['log', 'import', file]), /stop it first/);
    await server.stop();
    const embedded = await startStrata(context);
    refusedWith(await tryAdmin(embedded, ['log', 'import', file]), /runs on/);
    await embedded.stop();
    assert.equal(((await admin(embedded, ['log', 'import', file])) as { events: number }).events, 5);
  });

  test('refuses a log that already holds something else', async (context) => {
    const file = path.join(await tempDir(context), 'log');
    await admin(await filledPlace(context, 5), ['log', 'export', file]);
    const place = await newPlace(context);
    await onLog(place, (store) => store.append({ stream: newStream(), expected: 'none', events: [newEvent()] }));
    refusedWith(await tryAdmin(place, ['log', 'import', file]), /Line 2: the target holds repository-/);
    // It is still what it was, and may be served.
    assert.equal((await tryAdmin(place, ['log', 'export', '-'])).code, 0);
  });
});

describe('An export', () => {
  test('that is killed leaves no file under its name, and goes on after its last whole line', async (context) => {
    const place = await filledPlace(context, 350);
    const file = path.join(await tempDir(context), 'log');
    await killedAt(place, 'log-export-written', ['log', 'export', file]);
    await assert.rejects(stat(file), { code: 'ENOENT' });
    assert.equal(await readFile(`${file}.partial`, 'utf8'), `${LOG_FILE_HEADER}\n`);
    await onLog(place, (store) => fillOddLog(store, 20));
    const whole = await textOf(place);
    // What a writer may leave behind: all but a part of a line, blocks of zeros, even the end of a smaller log.
    const lines = whole.split('\n').slice(0, -1);
    for (const [kept, rest] of [
      [200, ''],
      [200, lines[200]?.slice(0, 50)],
      [250, '\0'.repeat(4_096)],
      [300, `${lines.at(-1)}\n`],
    ] as const) {
      await writeFile(`${file}.partial`, `${lines.slice(0, kept).join('\n')}\n${rest}`);
      const report = (await admin(place, ['log', 'export', file])) as { resumed: number; events: number };
      assert.deepEqual([report.events, report.resumed], [370, kept - 1]);
      assert.equal(await readFile(file, 'utf8'), whole);
      await assert.rejects(stat(`${file}.partial`), { code: 'ENOENT' });
      refusedWith(await tryAdmin(place, ['log', 'export', file]), /exists/);
      await rm(file);
    }
    await writeFile(`${file}.partial`, whole);
    await truncate(`${file}.partial`, whole.length - 200);
    refusedWith(await tryAdmin(await filledPlace(context, 3), ['log', 'export', file]), /does not hold/);
  });

  test('under a running server holds all that was answered before it began', async (context) => {
    const server = await startStrata(context, { env: (await newPlace(context)).env });
    const ada = await createAccount(server, 'ada');
    const exported = await tryAdmin(server, ['log', 'export', '-']);
    assert.match(exported.stdout, new RegExp(ada.id));
    assert.match(exported.stderr, /Exported \d+ events, digest [0-9a-f]{64}/);
    assert.equal((await tryAdmin(server, ['--json', 'log', 'export', '-'])).code, 2);
  });
});
