/** What owners undo, with real clients. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { RETENTION_MS_MIN } from '../../apps/server/settings.ts';
import { suiteEnding } from '../support/cleanup.ts';
import { until } from '../support/read-models.ts';
import {
  type Account,
  admin,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { activity, mirror, type Restored, restore } from '../support/undoing.ts';

const SET_CLOCK = path.resolve(import.meta.dirname, '../support/set-clock.ts');

describe('An owner', () => {
  const ending = suiteEnding();
  let strata: Strata;
  let ada: Account;
  let names = 0;

  beforeAll(async () => {
    strata = await startStrata(ending);
    ada = await createAccount(strata, 'ada');
  });

  async function newRepository(): Promise<{ readonly name: string; readonly url: string }> {
    const name = `undo-${++names}`;
    return { name, url: await createRepository(strata, ada, name) };
  }

  test('gets back a branch that was forced and one that was deleted, and a mirror is what it was', async (context) => {
    const { name, url } = await newRepository();
    const work = await newWorkTree(context);
    await commitFile(work, 'precious', 'work\n');
    await git(work, ['tag', '-a', 'v1', '-m', 'one']);
    await git(work, ['branch', 'feature']);
    await git(work, ['push', '--quiet', url, '--all']);
    await git(work, ['push', '--quiet', url, '--tags']);
    const before = await mirror(context, url);
    const [newest] = await activity(strata, ada, name);
    await git(work, ['reset', '--quiet', '--hard', 'HEAD~1']);
    await commitFile(work, 'other', 'history\n');
    await git(work, ['push', '--quiet', '--force', url, 'main', 'main:later', ':feature', ':refs/tags/v1']);
    assert.notEqual(await mirror(context, url), before);
    const planned = await restore(strata, ada, name, { event_id: newest?.id, dry_run: true });
    const restored = await restore(strata, ada, name, { event_id: newest?.id });
    assert.equal(restored.status, 200, restored.text);
    assert.deepEqual((restored.body as Restored).updates, (planned.body as Restored).updates);
    assert.equal(await mirror(context, url), before);
    const undone = await restore(strata, ada, name, { before_event_id: (restored.body as Restored).event_id });
    assert.equal(undone.status, 200, undone.text);
    assert.match(await mirror(context, url), /refs\/heads\/later/);
    const kinds = new Set((await activity(strata, ada, name)).slice(0, 8).map(({ kind }) => kind));
    assert.deepEqual([...kinds], ['restore']);
  });

  test('reads what a forced push left for an hour without retention, and then until the first drop', async (context) => {
    const clockFile = path.join(await tempDir(context), 'ahead-ms');
    const ahead = (ms: number) => writeFile(clockFile, String(ms));
    await ahead(0);
    const clock = { NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile, STRATA_RETENTION_DAYS: '0' };
    const node = await startStrata(context, { env: clock });
    const owner = await createAccount(node, 'ada');
    const url = await createRepository(node, owner, 'forced');
    const work = await newWorkTree(context);
    const precious = await commitFile(work, 'precious', 'work\n');
    await git(work, ['push', '--quiet', url, 'main']);
    const [pushed] = await activity(node, owner, 'forced');
    await git(work, ['commit', '--quiet', '--amend', '--message', 'forced']);
    await git(work, ['push', '--quiet', '--force', url, 'main']);
    const then = url.replace('forced.git', `forced@${pushed?.id}.git`);
    const clone = async () => {
      const made = path.join(await tempDir(context), 'then');
      const { code, stderr } = await tryGit(work, ['clone', '--quiet', then, made]);
      return code === 0 ? git(made, ['rev-parse', 'HEAD']) : stderr;
    };
    const sweep = () => admin({ env: { ...node.env, ...clock } }, ['storage', 'expire']);
    assert.equal(await clone(), `${precious}\n`);
    await ahead(RETENTION_MS_MIN - 60_000);
    await sweep();
    assert.equal(await clone(), `${precious}\n`);
    await ahead(RETENTION_MS_MIN + 60_000);
    assert.equal(await clone(), `${precious}\n`, 'nothing has dropped it');
    assert.equal((await restore(node, owner, 'forced', { event_id: pushed?.id, dry_run: true })).status, 200);
    await sweep();
    await until(async () => /has passed retention: it was removed by the event/.test(await clone()));
    assert.equal((await restore(node, owner, 'forced', { event_id: pushed?.id })).status, 410);
  }, 120_000);
});
