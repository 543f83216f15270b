/** A node whose background work fails reports it, still answers every request, and recovers without a restart. */
import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { test } from 'vitest';
import { cleanUp } from '../support/cleanup.ts';
import { until } from '../support/read-models.ts';
import { admin, createAccount, createRepository, git, newWorkTree, PARTS_OK, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { tempDir } from '../support/temp-dir.ts';

async function readyz(strata: Strata): Promise<{ readonly status: number; readonly parts: unknown }> {
  const answer = await fetch(`${strata.url}/readyz`);
  const { parts } = (await answer.json()) as { readonly parts: unknown };
  return { status: answer.status, parts };
}

test('a node that cannot record which pushes it sent to webhooks is ready and reports webhooks as degraded', async (context) => {
  const shared = await sharedParts(context);
  const strata = await startNode(context, shared);
  const ada = await createAccount(strata, 'ada');
  const remote = await createRepository(strata, ada, 'engine');
  const work = await newWorkTree(context);
  const fine = { ...PARTS_OK, workflows: 'ok', webhooks: 'ok', checkpoints: 'ok' };
  assert.deepEqual(await readyz(strata), { status: 200, parts: fine });

  const client = new pg.Client({ connectionString: shared.env['STRATA_DATABASE_OWNER_URL'] });
  await client.connect();
  cleanUp(context, () => client.end());
  await client.query('ALTER TABLE policy_marks RENAME TO policy_marks_away');
  await git(work, ['push', '--quiet', remote, 'main']);
  const degraded = { ...fine, webhooks: 'degraded' };
  await until(async () => {
    const { status, parts } = await readyz(strata);
    assert.equal(status, 200);
    return isDeepStrictEqual(parts, degraded);
  });
  await client.query('ALTER TABLE policy_marks_away RENAME TO policy_marks');
  await until(async () => isDeepStrictEqual(await readyz(strata), { status: 200, parts: fine }));
});

test('a node whose store of layers is away is ready and reports layers as degraded, though nobody pushes', async (context) => {
  const shared = await sharedParts(context);
  const layersDir = path.join(await tempDir(context), 'layers');
  const strata = await startNode(context, shared, { STRATA_LAYERS_DIR: layersDir });
  const isShown = async (state: 'ok' | 'degraded', figure: 0 | 1): Promise<boolean> => {
    const { status, parts } = await readyz(strata);
    assert.equal(status, 200);
    const metrics = await (await fetch(`${strata.url}/metrics`)).text();
    const worked = { ...PARTS_OK, layers: state, workflows: 'ok', webhooks: 'ok', checkpoints: 'ok' };
    return isDeepStrictEqual(parts, worked) && metrics.includes(`\nstrata_part_degraded{part="layers"} ${figure}\n`);
  };
  await until(() => isShown('ok', 0));
  await rename(layersDir, `${layersDir}-away`);
  await until(() => isShown('degraded', 1));
  assert.match(strata.log(), /"level":"warn".*"msg":"The store of layers does not answer"/);
  await rename(`${layersDir}-away`, layersDir);
  await until(() => isShown('ok', 0));
  assert.match(strata.log(), /"msg":"The store of layers answers again"/);
});

test('a worker reports checkpoints as degraded until the operator accepts that a log lost its end', async (context) => {
  const shared = await sharedParts(context);
  const before = await startNode(context, shared);
  const ada = await createAccount(before, 'ada');
  const headers = { Authorization: `Bearer ${ada.token}` };
  const note = await (await fetch(`${before.url}/v1/account/checkpoints/latest`, { headers })).text();
  await before.stop();
  // The log as a restore leaves it: a checkpoint of more entries was signed.
  const folder = path.join(shared.env['STRATA_LAYERS_DIR'] ?? '', 'checkpoints', ada.id);
  await writeFile(path.join(folder, '0000000000000999'), note.replace(/\n\d+\n/, '\n999\n'));
  const isShown = async (strata: Strata, state: 'ok' | 'degraded', figure: 0 | 1): Promise<boolean> => {
    const { status, parts } = await readyz(strata);
    assert.equal(status, 200);
    const metrics = await (await fetch(`${strata.url}/metrics`)).text();
    const shown = { ...PARTS_OK, workflows: 'ok', webhooks: 'ok', checkpoints: state };
    return isDeepStrictEqual(parts, shown) && metrics.includes(`\nstrata_checkpoints_contradicted ${figure}\n`);
  };
  const restored = await startNode(context, shared);
  await until(() => isShown(restored, 'degraded', 1));
  const refused = await fetch(`${restored.url}/v1/account/checkpoints/latest`, { headers });
  assert.equal(refused.ok, false);
  await admin(restored, ['log', 'checkpoints', 'accept-loss', '--all', '--reason', 'a test', '--yes']);
  assert.ok((await fetch(`${restored.url}/v1/account/checkpoints/latest`, { headers })).ok);
  await restored.stop();
  const after = await startNode(context, shared);
  await until(() => isShown(after, 'ok', 0));
});
