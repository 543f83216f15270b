/** What an operator does with a copy of a bucket whose service is lost: `strata-admin storage rebuild`. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import type { RebuildReport } from '../../apps/admin/rebuild-from-store.ts';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import { writeManifest } from '../../core/use-cases/manifests/write-manifest.ts';
import { copyStore } from '../support/bucket-script.ts';
import { cleanUp, suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { startGitReading } from '../support/git-reading.ts';
import { layersIn } from '../support/layers-in.ts';
import { keepLog } from '../support/log.ts';
import { testPastEntities } from '../support/past-repositories.ts';
import { recordRefsIn } from '../support/recorded-refs.ts';
import { type Account, api, createAccount, git, gitUrl, type Strata, tryAdmin } from '../support/strata.ts';
import { type SharedParts, sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('A repository of which only the store is left', () => {
  const ending = suiteEnding();
  let shared: SharedParts;
  let strata: Strata;
  let ada: Account;

  beforeAll(async () => {
    shared = await sharedParts(ending);
    strata = await startNode(ending, shared);
    ada = await createAccount(strata, 'ada');
  });

  /** Copies a store with one repository into a folder. Returns its refs as `git ls-remote` lists them. */
  async function lostService(
    folder: string,
    recorded: { readonly names: readonly string[]; readonly defaultBranch?: string } = { names: [] },
  ): Promise<{ readonly id: RepositoryId; readonly refs: readonly string[] }> {
    const reading = await startGitReading();
    cleanUp(ending, () => reading.close());
    const { git: client, database, account, node } = reading;
    const first = client.commit({ first: randomBytes(300) });
    await reading.push({ 'refs/heads/main': first, 'refs/heads/gone': client.commit({ gone: 'gone' }) });
    await reading.push({ 'refs/heads/main': client.commit({ other: 'other' }, { parents: [] }) });
    await reading.push({ 'refs/heads/gone': null, 'refs/tags/v1': first });
    const pushed = await reading.current();
    if (recorded.names.length > 0) {
      const tips = Object.fromEntries([...pushed.entity.state.refs.entries()].map(([name, ref]) => [name, ref.id]));
      const refs = { ...tips, ...Object.fromEntries(recorded.names.map((name) => [name, first])) };
      await recordRefsIn(node.events, { ...recorded, account, repository: pushed.id, refs });
    }
    const { id, entity } = await reading.current();
    const layers = layersIn(database.layers);
    await writeManifest(
      { ...node, layers, past: testPastEntities(node), retentionMs: 0, log: keepLog() },
      { account, repository: id },
    );
    await copyStore(database.layers, '', folder);
    assert.equal(entity.state.refs.size, 2 + recorded.names.length);
    const refs = [...entity.state.refs.entries()].map(([name, ref]) => `${ref.id}\t${name}`);
    const [head] = refs.filter((line) => line.endsWith('\trefs/heads/main'));
    return { id, refs: [`${head?.slice(0, 40)}\tHEAD`, ...refs].sort() };
  }

  async function listed(name: string): Promise<readonly string[]> {
    return (await git(shared.layersDir, ['ls-remote', gitUrl(strata, ada, name)])).trim().split('\n').sort();
  }

  /** The data of the entries of an account's log that say that a repository was made of another's manifest. */
  async function rebuiltIn({ token }: Account): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const listed = await api(strata, token, 'GET', '/v1/account/events?type=RepositoryRebuilt');
    assert.equal(listed.status, 200, listed.text);
    const { events } = JSON.parse(listed.text) as {
      readonly events: readonly { readonly entry: { readonly data: Readonly<Record<string, unknown>> } }[];
    };
    return events.map(({ entry }) => entry.data);
  }

  const rebuild = (from: string, name: string, ...more: readonly string[]) =>
    tryAdmin(strata, ['--json', 'storage', 'rebuild', from, '--username', 'ada', '--name', name, ...more]);

  test('is made again beside a running server, which serves it, and only once', async () => {
    const folder = await tempDir(ending);
    const { id, refs } = await lostService(folder);
    const made = await rebuild(`${folder}/`, 'engine');
    assert.equal(made.code, 0, made.stderr);
    const report = JSON.parse(made.stdout) as RebuildReport;
    assert.deepEqual([report.refs, report.layers, report.source.repository_id], [2, 2, id]);
    assert.deepEqual(await listed('engine'), refs);
    const clone = await tempDir(ending);
    await git(clone, ['clone', '--quiet', '--mirror', gitUrl(strata, ada, 'engine'), 'copy.git']);
    await git(path.join(clone, 'copy.git'), ['fsck', '--full', '--strict']);
    const told = await api(strata, ada.token, 'GET', '/v1/account/events?actor_id=storage%20rebuild');
    const { events } = JSON.parse(told.text) as { readonly events: readonly { readonly entry: { type: string } }[] };
    const types = new Set(events.map(({ entry }) => entry.type));
    assert.ok(types.has('RepositoryCreated') && types.has('RefsUpdated'), told.text);

    const again = await rebuild(`${folder}/`, 'engine');
    assert.deepEqual([again.code, again.stdout], [1, '']);
    assert.match(again.stderr, /The repository exists already, and is not empty/);
  });

  test('goes to another user than its own, who is here, only if the operator says yes', async () => {
    const folder = await tempDir(ending);
    const { id } = await lostService(folder);
    const grace = await createAccount(strata, 'grace');
    const toGrace = (...more: readonly string[]) =>
      tryAdmin(strata, ['storage', 'rebuild', `${folder}/`, '--username', 'grace', '--name', 'r', ...more]);
    const refused = await toGrace();
    assert.deepEqual([refused.code, refused.stdout], [1, '']);
    assert.match(refused.stderr, /is of "ada\/r", and "ada" is here: add --yes to give the repository to "grace"/);
    const made = await toGrace('--yes');
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^Made grace\/r from ada\/r /);
    const [hers, his] = [await rebuiltIn(grace), await rebuiltIn(ada)];
    assert.equal(hers.length, 1);
    assert.deepEqual(hers, his, 'both logs say the same');
    assert.equal(hers[0]?.['source_repository_id'], id);
  });

  test('comes back without refs of names that are refused today, and the command names them', async () => {
    const folder = await tempDir(ending);
    const head = 'refs/heads/main';
    const leftOut = ['refs/heads/refs/heads/main', 'refs/tags/HEAD', `refs/tags/${'ab'.repeat(20)}`].sort();
    const { refs } = await lostService(folder, { names: leftOut, defaultBranch: head });
    const made = await rebuild(`${folder}/`, 'left-out');
    assert.equal(made.code, 0, made.stderr);
    const report = JSON.parse(made.stdout) as RebuildReport;
    assert.deepEqual([report.refs, report.left_out], [2, leftOut]);
    const others = refs.filter((line) => !leftOut.some((name) => line.endsWith(`\t${name}`)));
    assert.deepEqual(await listed('left-out'), others, 'the default branch is main');

    const told = await tryAdmin(strata, ['storage', 'rebuild', `${folder}/`, '--username', 'ada', '--name', 'told']);
    for (const name of leftOut) assert.ok(told.stdout.includes(`its name is refused today: ${name}\n`), told.stdout);
  });

  test('is named if the store holds several, and chosen by its id', async () => {
    const folder = await tempDir(ending);
    const [one, other] = [await lostService(folder), await lostService(folder)];
    const several = await rebuild(`${folder}/`, 'several');
    assert.equal(several.code, 1);
    assert.match(several.stderr, new RegExp(`choose by --repository: .*${one.id} \\(ada/r\\)`));
    const chosen = await rebuild(`${folder}/`, 'several', '--repository', other.id);
    assert.equal(chosen.code, 0, chosen.stderr);
    assert.deepEqual(await listed('several'), other.refs);
  });

  test('is not made of a damaged layer, nor of what is not there, and the reason is told', async () => {
    const folder = await tempDir(ending);
    await lostService(folder);
    const [layer = ''] = (await filesBelow(folder)).filter((file) => file.endsWith('.tar'));
    const bytes = await readFile(path.join(folder, layer));
    bytes[700] = (bytes[700] ?? 0) ^ 1;
    await writeFile(path.join(folder, layer), bytes);
    for (const [from, says] of [
      [`${folder}/`, /SHA-256|sha256/i],
      ['no-bucket', /The user has no bucket "no-bucket"/],
    ] as const) {
      const { code, stderr } = await rebuild(from, 'damaged');
      assert.equal(code, 1);
      assert.match(stderr, says);
    }
  });
});
