/**
 * What the caches of a server take, of which bound, and how often they help, as an operator sees it: with it a cache
 * that is full can be told from a leak.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import {
  api,
  commitFile,
  createAccount,
  createRepository,
  git,
  newWorkTree,
  type Strata,
  startStrata,
} from '../support/strata.ts';
import { sharedParts } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

/** The caches of a metric, by name. */
async function shown({ url }: Strata, metric: string): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const lines = text.matchAll(new RegExp(`^strata_kept_${metric}\\{cache="(\\w+)"\\} (\\d+)$`, 'gm'));
  return new Map([...lines].map(([, name = '', figure]) => [name, Number(figure)]));
}

/** In the part of a server that every request meets. */
const EXPECTED = {
  memory: ['branches', 'entities', 'git_answers', 'git_held_packs', 'git_objects', 'git_pages', 'git_reachable'],
  disk: ['git_answer_files', 'git_repositories'],
  entries: ['commit_totals', 'rate_counts', 'source_addresses', 'transfer_sums'],
};

test('The metrics show what each cache keeps, its bound, and that it is used', async (context) => {
  const strata = await startStrata(context, { env: (await sharedParts(context)).env });
  for (const [metric, names] of [
    ['bytes', [...EXPECTED.memory, 'ref_answers', 'rendered_pages', 'rest_bodies']],
    ['disk_bytes', EXPECTED.disk],
    ['entries', EXPECTED.entries],
  ] as const) {
    const [idle, bounds] = [await shown(strata, metric), await shown(strata, `${metric}_max`)];
    assert.deepEqual([...bounds.keys()], [...idle.keys()]);
    for (const name of names) assert.equal(idle.get(name), 0, name);
    for (const [name, max] of bounds) assert.ok(max > 0, `${name} has no bound`);
  }
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  const listed = async () => (await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches')).status;
  assert.equal(await listed(), 200);
  await commitFile(work, 'second', 'second\n');
  await git(work, ['push', '--quiet', url, 'main']);
  // The metrics are made once a second.
  await sleep(1_100);
  assert.ok(((await shown(strata, 'bytes')).get('git_held_packs') ?? 0) > 0, 'git has not needed the second pack');
  // The second clone brings the answer into memory, and the third finds it there.
  for (let times = 0; times < 3; times += 1) {
    await git(await tempDir(context), ['clone', '--quiet', url]);
    assert.equal(await listed(), 200);
  }
  await sleep(1_100);
  const [busy, disk, hits, misses] = [
    await shown(strata, 'bytes'),
    await shown(strata, 'disk_bytes'),
    await shown(strata, 'hits_total'),
    await shown(strata, 'misses_total'),
  ];
  assert.deepEqual([...misses.keys()], [...hits.keys()]);
  for (const name of ['entities', 'git_answers', 'git_pages', 'ref_answers', 'rest_bodies']) {
    assert.ok((busy.get(name) ?? 0) > 0, `${name} is empty`);
    // The packs are so small that they are read in memory.
    if (name !== 'git_pages') assert.ok((hits.get(name) ?? 0) > 0, `${name} had nothing`);
    assert.ok((misses.get(name) ?? 0) > 0, `${name} lacked nothing`);
  }
  for (const name of EXPECTED.disk) {
    assert.ok((disk.get(name) ?? 0) > 0, `${name} is empty`);
    assert.ok((hits.get(name) ?? 0) > 0, `${name} had nothing`);
  }
});
