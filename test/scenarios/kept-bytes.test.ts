/**
 * docs/operating.md, Where bytes are kept, against a real server: what that list leaves out is counted by nobody. A row
 * of what does not exist any more fails as well.
 */
import assert from 'node:assert/strict';
import { watch } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, test } from 'vitest';
import { EVENT_CATALOGUE } from '../../core/catalogue.ts';
import { type RepositoryId, uuid } from '../../core/kernel/ids.ts';
import { manifestKey, manifestRefsFile, manifestRefsKey } from '../../core/repository/manifest.ts';
import { projectTree, ROOT } from '../architecture/source-tree.ts';
import { withoutComments } from '../architecture/syntax.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { person } from '../support/person.ts';
import {
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

const PASSWORD = 'correct horse battery';
const SOME_REPOSITORY: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
/**
 * What this suite does not make: a rotation of the master key, a server with its own database, a restore of that, and a
 * bucket of a user.
 */
const NOT_MADE_HERE = [
  'checkpoints/<account>/lost/<size>',
  'data/master-key',
  'data/master-key.next',
  'data/postgres.before-<time>/',
  'data/postgres/',
  '/var/lib/strata/',
  'strata-check/<check>',
];

/** The places that the first column of the table below a heading names. */
async function placesIn(heading: string): Promise<readonly string[]> {
  const text = await readFile(path.join(ROOT, 'docs/operating.md'), 'utf8');
  const part = text.split(`\n### ${heading}\n`)[1]?.split('\n## ')[0]?.split('\n### ')[0] ?? '';
  const rows = part.split('\n').filter((line) => line.startsWith('| `'));
  for (const row of rows) {
    const cells = row.split(' | ').map((cell) => cell.replaceAll('|', '').trim());
    assert.ok(cells.length === 4 && cells.every((cell) => cell !== ''), `each column of: ${row}`);
  }
  return rows.flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, place = '']) => place));
}

describe('The list of where bytes are kept', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  const seen = new Set<string>();

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
  });

  test('names every stream of the log', async () => {
    const streams = await placesIn('Streams of the event log');
    assert.deepEqual(
      streams.toSorted(),
      Object.keys(EVENT_CATALOGUE)
        .map((category) => `${category}-*`)
        .sort(),
    );
  });

  test('names every table of the database, and no other', async () => {
    const database = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
    await database.connect();
    const listed = (await placesIn('Tables of PostgreSQL')).toSorted();
    const generation = /^(.*)_v[0-9]+_[0-9]+$/;
    const found = async (): Promise<readonly string[]> => {
      const { rows } = await database.query<{ schema: string; name: string }>(
        `SELECT schemaname AS schema, tablename AS name FROM pg_tables
         WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
      );
      const names = rows.map(({ schema, name }) =>
        schema === 'read_models' ? (generation.exec(name)?.[1] ?? `read_models.${name}`) : name,
      );
      return [...new Set(names)].sort();
    };
    try {
      // The first start makes the tables of read models.
      for (let n = 0; n < 100 && (await found()).length < listed.length; n += 1) await sleep(100);
      assert.deepEqual(listed, await found());
    } finally {
      await database.end();
    }
  });

  test('names every file, folder and object that a busy server makes, and no other', async (context) => {
    const folders = { data: strata.dataDir, layers: shared.layersDir };
    const watchers = Object.entries(folders).map(([name, folder]) =>
      watch(folder, { recursive: true }, (_event, file) => file !== null && seen.add(`${name}/${file}`)),
    );
    await beBusy(strata, context);
    for (const watcher of watchers) watcher.close();
    for (const [name, folder] of Object.entries(folders)) {
      for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
        const file = path.join(name, path.relative(folder, path.join(entry.parentPath, entry.name)));
        seen.add(entry.isDirectory() ? `${file}/` : file);
      }
    }
    // A manifest is written within a minute, which is too long to wait for here.
    const manifests = [
      manifestKey(SOME_REPOSITORY, 1),
      manifestRefsKey(SOME_REPOSITORY, { file: manifestRefsFile(1, '0'.repeat(64)) }),
    ];
    for (const key of manifests) seen.add(`layers/${key}`);
    const objects = await placesIn("Objects of the layers' store");
    const places = [...(await placesIn('Files and folders')), ...objects].filter(
      (place) => !place.startsWith('TMPDIR/'),
    );
    const forms = places.map((place) => ({
      place,
      form: formOf(objects.includes(place) ? `layers/${place}` : place),
    }));
    const unlisted = [...seen].filter((file) => !forms.some(({ form }) => form.test(file)) && !isAbove(file, places));
    assert.deepEqual(unlisted, []);
    const unseen = forms.filter(({ form }) => ![...seen].some((file) => form.test(file))).map(({ place }) => place);
    assert.deepEqual(
      unseen.filter((place) => !NOT_MADE_HERE.includes(place)),
      [],
    );
  });

  test('names every temporary folder, and every kind of object that the code makes', async () => {
    const temporary: string[] = [];
    const objects: string[] = [];
    for (const [file, text] of projectTree()) {
      if (!SERVER_CODE.test(file)) continue;
      if (!text.includes('tmpdir()') && !text.includes('layerKey(')) continue;
      const code = withoutComments(file, text);
      if (code.includes('tmpdir()')) temporary.push(...firstGroups(code, /['`](strata-[a-z]+-)/g));
      if (code.includes('layerKey(')) objects.push(...firstGroups(code, /['`]([a-z-]+)\/[^'`\n.]*['`$.]/g));
    }
    const places = await placesIn('Files and folders');
    const inTemporary = places.flatMap((place) => /^TMPDIR\/(strata-[a-z]+-)/.exec(place)?.[1] ?? []);
    assert.deepEqual([...new Set(temporary)].sort(), inTemporary.toSorted());
    const kinds = (await placesIn("Objects of the layers' store")).map((place) => place.split('/')[0] ?? '');
    assert.deepEqual([...new Set(objects)].sort(), [...new Set(kinds)].sort());
  });
});

/** Not the command line, which keeps nothing on the server. */
const SERVER_CODE = /^(core|adapters|projections|workflows|apps\/(admin|api|server|front-door|git-http|website))\//;

function firstGroups(text: string, form: RegExp): readonly string[] {
  return [...text.matchAll(form)].map(([, found = '']) => found);
}

/** A folder ends with a slash, and stands for everything below it. */
function formOf(place: string): RegExp {
  const escaped = place.replaceAll(/[.\\/]/g, '\\$&').replaceAll(/<[^>]+>/g, '[^/]+');
  return new RegExp(place.endsWith('/') ? `^${escaped.slice(0, -2)}(\\/|$)` : `^${escaped}$`);
}

/** Whether it is a folder on the way to a place. */
function isAbove(file: string, places: readonly string[]): boolean {
  const depth = file.split('/').filter((part) => part !== '').length;
  return places.some((place) => {
    const whole = /^(data|layers)\//.test(place) ? place : `layers/${place}`;
    const above = whole.split('/').slice(0, depth).join('/');
    return whole.split('/').filter((part) => part !== '').length > depth && formOf(`${above}/`).test(file);
  });
}

/** Does everything that leaves files: small and large pushes, clones, archives, a README, a checkpoint, an erasure. */
async function beBusy(strata: Strata, context: Parameters<typeof tempDir>[0]): Promise<void> {
  const ada = await createAccount(strata, 'ada');
  await createAccount(strata, 'bob');
  const url = await createRepository(strata, ada, 'busy');
  const work = await newWorkTree(context);
  await git(work, ['push', '-q', url, 'main']);
  for (let n = 0; n < 3; n += 1) {
    await commitFile(
      work,
      `large-${n}`,
      Array.from({ length: 60_000 }, (_, line) => `${line * 7_919 * (n + 1)}`).join('\n'),
    );
    await git(work, ['push', '-q', url, 'main']);
  }
  await git(work, ['push', '-q', '--force', url, 'main~1:main']);
  for (const name of ['one', 'two']) await git(await tempDir(context), ['clone', '-q', url, name]);
  for (const target of ['archive/main.tar.gz', 'contents', 'branches', 'commits']) {
    assert.equal((await api(strata, ada.token, 'GET', `/v1/repos/ada/busy/${target}`)).status, 200, target);
  }
  const browser = person();
  await browser.submit(strata, '/sign-in', { login: 'ada', password: PASSWORD });
  await createRepository(strata, ada, 'with-readme');
  await browser.submit(strata, '/ada/with-readme/readme', {}, '/ada/with-readme');
  await browser.submit(strata, '/history/checkpoint', {}, '/history');
  await admin(strata, ['account', 'erase', '--username', 'bob', '--yes']);
}
