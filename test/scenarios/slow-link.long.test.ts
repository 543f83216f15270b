/** A push over a slow link, in real time: 1.2 MB at 13 KB/s take 92 seconds. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { PUSH_PACE_SPAN_MS } from '../../apps/git-http/limits.ts';
import { startSlowLink } from '../support/slow-link.ts';
import { createAccount, createRepository, git, gitUrl, newWorkTree, startStrata } from '../support/strata.ts';

const FILE_BYTES = 1_200_000;
const BYTES_PER_SECOND = 13_000;

test('git pushes 1.2 MB at 13 KB/s', async (context) => {
  const strata = await startStrata(context);
  const ada = await createAccount(strata, 'ada');
  await createRepository(strata, ada, 'engine');
  const port = await startSlowLink(context, Number(new URL(strata.url).port), BYTES_PER_SECOND / 10, async (piece) => {
    piece.send();
    await sleep((piece.bytes / BYTES_PER_SECOND) * 1_000);
  });
  const work = await newWorkTree(context);
  await writeFile(path.join(work, 'large'), randomBytes(FILE_BYTES));
  await git(work, ['add', 'large']);
  await git(work, ['commit', '--quiet', '-m', 'Add a large file']);
  const begunAt = performance.now();
  await git(work, ['push', gitUrl({ url: `http://127.0.0.1:${port}` }, ada, 'engine'), 'main']);
  assert.ok(performance.now() - begunAt > PUSH_PACE_SPAN_MS);
  const [tip = ''] = (await git(work, ['ls-remote', gitUrl(strata, ada, 'engine'), 'main'])).split('\t');
  assert.equal(tip, (await git(work, ['rev-parse', 'HEAD'])).trim());
});
