/** What the caches of a server take, as an operator sees it: with it a cache that is full can be told from a leak. */
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

async function keptBytes({ url }: Strata): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const kept = text.matchAll(/^strata_kept_bytes\{cache="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...kept].map(([, name = '', bytes]) => [name, Number(bytes)]));
}

test('The metrics show what each cache keeps in memory', async (context) => {
  const strata = await startStrata(context, { env: (await sharedParts(context)).env });
  const idle = await keptBytes(strata);
  const names = [
    'git_answers',
    'git_held_packs',
    'git_objects',
    'git_pages',
    'git_reachable',
    'ref_answers',
    'rendered_pages',
    'rest_bodies',
  ];
  assert.deepEqual(idle, Object.fromEntries(names.map((name) => [name, 0])));
  const ada = await createAccount(strata, 'ada');
  const url = await createRepository(strata, ada, 'project');
  const work = await newWorkTree(context);
  await git(work, ['push', '--quiet', url, 'main']);
  assert.equal((await api(strata, ada.token, 'GET', '/v1/repos/ada/project/branches')).status, 200);
  await commitFile(work, 'second', 'second\n');
  await git(work, ['push', '--quiet', url, 'main']);
  // The metrics are made once a second.
  await sleep(1_100);
  assert.ok(((await keptBytes(strata))['git_held_packs'] ?? 0) > 0, 'git has not needed the second pack');
  for (let times = 0; times < 2; times += 1) await git(await tempDir(context), ['clone', '--quiet', url]);
  await sleep(1_100);
  const busy = await keptBytes(strata);
  for (const name of ['git_answers', 'git_pages', 'ref_answers', 'rest_bodies']) {
    assert.ok((busy[name] ?? 0) > 0, `${name} of ${JSON.stringify(busy)}`);
  }
});
