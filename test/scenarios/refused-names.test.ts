/**
 * Names that nobody may give a new branch or tag, since readers would take them for something else; and a log from
 * before, which holds them all.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { beforeAll, describe, test } from 'vitest';
import { replayFile } from '../../apps/replay/replay.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { bundledCommand, commandLine } from '../support/command-line.ts';
import { recordRefs } from '../support/recorded-refs.ts';
import { signIn } from '../support/site-browser.ts';
import {
  type Account,
  admin,
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  tryGit,
} from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type Restored, restore } from '../support/undoing.ts';

const HEX = '0123456789abcdefABCD'.repeat(2);
const FIRST = ['HEAD', 'refs', HEX, HEX.toUpperCase(), 'ab'.repeat(32), 'AB'.repeat(32)];
const REFUSED = ['refs/heads/', 'refs/tags/'].flatMap((folder) =>
  FIRST.map((first, index) => `${folder}${first}${index % 2 === 0 ? '' : '/tags/v1.0'}`),
);
/** In each folder the names that the others are folders of. */
const OTHERS = ['refs/heads/', 'refs/tags/'].flatMap((folder) =>
  FIRST.map((first, index) => `${folder}${first}${index % 2 === 0 ? '/x' : ''}`),
);
const ACCEPTED = [
  ...['refs/heads/main', 'refs/heads/head', 'refs/heads/x/HEAD', `refs/tags/x/${HEX}`, 'refs/tags/refs.x'],
  ...['refs/remotes/origin/HEAD', 'refs/notes/HEAD', `refs/pull/${HEX}`, `refs/tags/${HEX}0`],
];

describe('Names that readers would take for something else', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;
  let work: string;
  let first: string;
  let second: string;

  beforeAll(async () => {
    shared = await sharedParts(ending, 'postgres');
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
    work = await newWorkTree(ending);
    first = await commitFile(work, 'file', 'first\n');
    second = await commitFile(work, 'file', 'second\n');
  });

  const listed = async (url: string): Promise<Readonly<Record<string, string>>> => {
    const lines = (await git(work, ['ls-remote', url, 'refs/*'])).trim().split('\n');
    return Object.fromEntries(lines.map((line) => line.split('\t').toReversed()));
  };
  const repositoryId = async (name: string): Promise<string> =>
    ((await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`)).body as { id: string }).id;

  /** Makes a repository whose log from before has every refused name. */
  async function recorded(
    name: string,
    defaultBranch?: string,
  ): Promise<{ url: string; refs: Record<string, string> }> {
    const url = await createRepository(strata, ada, name);
    await git(work, ['push', '--quiet', url, `${second}:refs/heads/main`]);
    const refs = { 'refs/heads/main': second, ...Object.fromEntries(REFUSED.map((ref) => [ref, first])) };
    const about = { account: ada.id, repository: await repositoryId(name) };
    await recordRefs(shared, { ...about, refs, ...(defaultBranch === undefined ? {} : { defaultBranch }) });
    return { url, refs };
  }

  test('are refused to a push that creates them, each for itself', async () => {
    const url = await createRepository(strata, ada, 'pushed');
    for (const names of [REFUSED, OTHERS]) {
      const wanted = [...names, ...ACCEPTED].map((name) => `${first}:${name}`);
      const pushed = await tryGit(work, ['push', '--porcelain', url, ...wanted]);
      assert.notEqual(pushed.code, 0);
      for (const name of names) {
        const line = pushed.stdout.split('\n').find((text) => text.includes(`:${name}\t`)) ?? '';
        assert.match(line, /^!.*\[remote rejected\] \(.*choose another name\)$/, name);
      }
      assert.deepEqual(Object.keys(await listed(url)).sort(), ACCEPTED.toSorted());
    }
    const atomic = await tryGit(work, [
      'push',
      '--atomic',
      url,
      `${second}:refs/heads/main`,
      `${second}:refs/tags/HEAD`,
    ]);
    assert.notEqual(atomic.code, 0);
    assert.equal((await listed(url))['refs/heads/main'], first);
    const clone = path.join(await tempDir(ending), 'clone');
    await git(work, ['clone', '--quiet', '--branch', 'main', url, clone]);
    const checkedOut = await tryGit(clone, ['checkout', '--quiet', '-b', 'x']);
    assert.equal(checkedOut.code, 0, checkedOut.stderr);
  });

  test('move and go where they exist, and do not come back', async () => {
    const { url } = await recorded('moved');
    const moves = REFUSED.map((name) => `${second}:${name}`);
    await git(work, ['push', '--quiet', '--force', url, ...moves]);
    const moved = await listed(url);
    for (const name of REFUSED) assert.equal(moved[name], second, name);
    await git(work, ['push', '--quiet', url, ...REFUSED.map((name) => `:${name}`)]);
    assert.deepEqual(Object.keys(await listed(url)), ['refs/heads/main']);
    const again = await tryGit(work, ['push', '--porcelain', url, ...moves]);
    assert.equal(again.stdout.match(/remote rejected/g)?.length, REFUSED.length);
    // A deletion of a ref that is not there is a warning, whatever its name.
    const gone = await tryGit(work, ['push', url, ':refs/tags/HEAD']);
    assert.match(gone.stderr, /remote ref does not exist|deleting a non-existent ref/);
  });

  test('are left out of a restoration that would have to make them, and named', async () => {
    const { url, refs } = await recorded('restored');
    const before = (await api(strata, ada.token, 'GET', '/v1/repos/ada/restored/activity?limit=1')).body as {
      readonly activity: readonly { readonly id: string }[];
    };
    const event = before.activity[0]?.id ?? '';
    const [kept = '', ...others] = REFUSED;
    await git(work, [
      'push',
      '--quiet',
      '--force',
      url,
      `${second}:${kept}`,
      `${first}:main`,
      ...others.map((ref) => `:${ref}`),
    ]);
    const leftOut = others.toSorted();

    for (const body of [
      { event_id: event, dry_run: true },
      { event_id: event, dry_run: true, refs: [leftOut[0]] },
    ]) {
      const planned = await restore(strata, ada, 'restored', body);
      const { left_out, updates } = planned.body as Restored & { readonly left_out: readonly string[] };
      assert.deepEqual([planned.status, left_out], [200, 'refs' in body ? [leftOut[0]] : leftOut]);
      assert.deepEqual(updates.map(({ ref }) => ref).sort(), 'refs' in body ? [] : [kept, 'refs/heads/main'].sort());
    }
    const cli = await commandLine(ending, strata, {
      command: await bundledCommand(ending),
      env: { SERVICE_TOKEN: ada.token },
    });
    const told = await cli.done(['repo', 'restore', 'restored', '--event', event, '--dry-run']);
    for (const name of leftOut) assert.ok(told.includes(`${name}\tleft-out\t`), told);
    const browser = await signIn(strata, ada);
    const page = await browser.get(`/ada/restored/restore?at=${event}`);
    assert.equal(page.status, 200);
    assert.match(page.html, /Left out: <bdi>refs\/.*<\/bdi>\. No branch or tag of such a name/);
    for (const name of leftOut) assert.ok(page.html.includes(name), name);
    const alone = await browser.get(`/ada/restored/restore?at=${event}&ref=${encodeURIComponent(leftOut[0] ?? '')}`);
    assert.match(alone.html, /Left out: .*Nothing changes\./s);

    const seen = /name="seen" value="(\d+)"/.exec(page.html)?.[1] ?? '';
    const done = await browser.submit(
      '/ada/restored/restore',
      { at: event, ref: '', seen },
      `/ada/restored/restore?at=${event}`,
    );
    assert.equal(done.location, '/ada/restored/activity');
    assert.match(
      (await browser.get('/ada/restored/activity')).html,
      /2 refs restored\. Left out: refs\/heads\/.* and 6 more\./,
    );
    assert.deepEqual(await listed(url), { 'refs/heads/main': second, [kept]: refs[kept] });
  });

  test('stay readable in a log from before: folded, rebuilt, exported, cloned, and cloned as of a moment', async () => {
    const { url, refs } = await recorded('before', 'refs/heads/main');
    const moment = new Date().toISOString();
    const mirrored = async (from: string): Promise<Record<string, string>> => {
      const clone = path.join(await tempDir(ending), 'clone.git');
      await git(work, ['clone', '--quiet', '--mirror', from, clone]);
      await git(clone, ['fsck', '--full', '--strict']);
      const lines = (await git(clone, ['for-each-ref', '--format=%(refname) %(objectname)'])).trim().split('\n');
      return Object.fromEntries(lines.map((line) => line.split(' ')));
    };
    assert.deepEqual(await mirrored(url), refs);

    // A server that has nothing but the log and the layers.
    assert.equal(await strata.stop(), 0);
    const database = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
    await database.connect();
    await database.query('DROP SCHEMA read_models CASCADE');
    await database.query('TRUNCATE snapshots');
    await database.end();
    await rm(path.join(strata.dataDir, 'cache'), { recursive: true, force: true });
    strata = await strata.restart();
    const current = gitUrl(strata, ada, 'before');
    assert.deepEqual(await mirrored(current), refs);
    assert.deepEqual(await mirrored(current.replace(/\.git$/, `@${moment}.git`)), refs);
    const { projections } = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
      projections: { model: string; differences: number }[];
    };
    for (const { model, differences } of projections) assert.equal(differences, 0, model);

    const read = await api(strata, ada.token, 'GET', '/v1/repos/ada/before');
    assert.equal((read.body as { default_branch: string }).default_branch, 'refs/heads/main', 'as it was recorded');
    const tags = await api(strata, ada.token, 'GET', '/v1/repos/ada/before/tags?limit=100');
    assert.equal((tags.body as { tags: unknown[] }).tags.length, REFUSED.length / 2);
    assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/before/branches/HEAD')).status, 200);

    const folder = await tempDir(ending);
    const exported = path.join(folder, 'account.log');
    const lines = await fetch(`${strata.url}/v1/account/events/export`, {
      headers: { Authorization: `Bearer ${ada.token}` },
    });
    await writeFile(exported, await lines.text());
    const replayed = await replayFile(exported, null, () => undefined);
    const state = await api(strata, ada.token, 'GET', '/v1/account/state');
    assert.equal(replayed?.textDigest, createHash('sha256').update(state.text).digest('hex'));
    const whole = path.join(folder, 'whole.log');
    await admin(strata, ['log', 'export', whole]);
    assert.ok((await readFile(whole, 'utf8')).includes('refs/tags/HEAD'));
    const elsewhere = await sharedParts(ending, 'postgres');
    const env = { ...strata.env, ...elsewhere.env, STRATA_DATA_DIR: await tempDir(ending) };
    await admin({ env }, ['log', 'import', whole]);
    await git(work, ['push', '--quiet', '--force', current, `${second}:refs/tags/HEAD`, ':refs/heads/HEAD']);
  });

  test('are refused as a default branch, which is given as a short name or in full', async () => {
    const create = (name: string, default_branch: string) =>
      api(strata, ada.token, 'POST', '/v1/repositories', { name, default_branch });
    const change = (name: string, body: object) => api(strata, ada.token, 'PATCH', `/v1/repos/ada/${name}`, body);
    const branchOf = (answer: { readonly body: unknown }) => (answer.body as { default_branch: string }).default_branch;
    const made = await create('chosen', 'refs/heads/trunk/x');
    assert.deepEqual([made.status, branchOf(made)], [201, 'trunk/x']);
    const changed = await change('chosen', { default_branch: 'refs/heads/main' });
    assert.deepEqual([changed.status, branchOf(changed)], [200, 'main']);
    assert.equal(branchOf(await change('chosen', { default_branch: 'heads/main' })), 'heads/main');
    const refused = [
      'refs/tags/v1',
      'refs/',
      'refs',
      'refs/heads/',
      'refs/heads/refs/heads/main',
      'refs/remotes/x/main',
    ];
    for (const [index, name] of [...refused, ...FIRST, 'HEAD/x', `refs/heads/${HEX}`, '-x'].entries()) {
      assert.equal((await create(`refused-${index}`, name)).status, 422, name);
      assert.equal((await change('chosen', { default_branch: name })).status, 422, name);
    }
    assert.equal(branchOf(await change('chosen', { description: 'x' })), 'heads/main');

    const browser = await signIn(strata, ada);
    const fields = { name: 'on-the-page', description: '', default_branch: 'refs/heads/HEAD/x', readme: 'yes' };
    assert.equal((await browser.submit('/new', fields)).status, 422);
    const begun = await browser.submit('/new', { ...fields, default_branch: 'refs/heads/trunk' });
    assert.equal(begun.location, '/ada/on-the-page');
    const url = gitUrl(strata, ada, 'on-the-page');
    assert.deepEqual(Object.keys(await listed(url)), ['refs/heads/trunk']);
    const clone = path.join(await tempDir(ending), 'clone');
    await git(work, ['clone', '--quiet', url, clone]);
    assert.equal((await git(clone, ['symbolic-ref', 'HEAD'])).trim(), 'refs/heads/trunk');
  });

  test('stay a default branch that was recorded, which becomes the short name when it is sent back', async () => {
    const branchOf = async (name: string): Promise<string> => {
      const { body } = await api(strata, ada.token, 'GET', `/v1/repos/ada/${name}`);
      return (body as { default_branch: string }).default_branch;
    };
    await recorded('old-rest', 'refs/heads/main');
    const sentBack = { default_branch: await branchOf('old-rest'), description: 'read, changed and written back' };
    assert.equal((await api(strata, ada.token, 'PATCH', '/v1/repos/ada/old-rest', sentBack)).status, 200);
    assert.equal(await branchOf('old-rest'), 'main');

    await recorded('old-page', 'refs/heads/main');
    const browser = await signIn(strata, ada);
    const fields = { description: 'x', default_branch: 'refs/heads/main' };
    const saved = await browser.submit('/ada/old-page/settings', fields, '/ada/old-page/settings');
    assert.equal(saved.location, '/ada/old-page/settings');
    assert.equal(await branchOf('old-page'), 'main');

    await recorded('old-other', 'HEAD/x');
    const other = { default_branch: 'HEAD/x', description: 'read, changed and written back' };
    assert.equal((await api(strata, ada.token, 'PATCH', '/v1/repos/ada/old-other', other)).status, 200);
    assert.equal(await branchOf('old-other'), 'HEAD/x', 'no change');
    const readme = await browser.submit('/ada/old-other/readme', {}, '/ada/old-other');
    assert.match((await browser.follow(readme)).html, /cannot begin with HEAD, refs or an object id/);
  });
});
