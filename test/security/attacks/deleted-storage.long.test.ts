/**
 * The attack: an account fills its quota, deletes the repository and fills the next one. A deleted repository stays on
 * disk until the retention is over, since it can be undeleted; if it counted as nothing, a free account could fill the
 * disk without end: 3 MiB a round here, 12 rounds against a quota of 8 MiB.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, test } from 'vitest';
import { DEFAULT_PLANS } from '../../../core/account/plans.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';
import { admin, api, createRepository, git, newWorkTree, tryGit } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';

const MIB = 1024 * 1024;
const QUOTA_BYTES = 8 * MIB;
const ROUNDS = 12;
const ROUND_BYTES = 3 * MIB;
const ACCEPTED = Math.floor(QUOTA_BYTES / ROUND_BYTES);
/** Layers and the cache hold a copy each; of a refused push there is a quarantine for a moment. */
const DISK_BYTES_MAX = 2 * QUOTA_BYTES + 2 * ROUND_BYTES;
const REFUSED = /remote: storage quota reached: [\d,]+ KiB are left, and this push brings 3,\d{3} KiB;/;

interface Usage {
  readonly storage_bytes: { readonly used: number };
  readonly deleted_storage_bytes: { readonly used: number };
}

async function usage({ strata, attacker }: Stage) {
  const { body } = await api(strata, attacker.token, 'GET', '/v1/account/usage');
  const { storage_bytes: storage, deleted_storage_bytes: deleted } = body as Usage;
  const { body: ledger } = await api(strata, attacker.token, 'GET', '/v1/account/usage/ledger');
  const { totals } = ledger as { readonly totals: { readonly storage_bytes: number } };
  assert.equal(totals.storage_bytes, storage.used, 'the ledger is a sum of what the figure shows');
  return { storage: storage.used, deleted: deleted.used };
}

describe('Repositories that are filled and deleted', () => {
  test('take no more disk than the quota, and the push beyond it is refused by name', async (context) => {
    const plans = path.join(await tempDir(context), 'plans.json');
    const FREE = { ...DEFAULT_PLANS.FREE, storage_bytes: QUOTA_BYTES };
    await writeFile(plans, JSON.stringify({ ...DEFAULT_PLANS, FREE }));
    const stage = await setStage(context, { env: { STRATA_PLANS: plans } });
    const { strata, attacker } = stage;
    const work = await newWorkTree(context);
    const refusals: string[] = [];
    const deleted: string[] = [];

    const round = async (n: number): Promise<void> => {
      await git(work, ['checkout', '--quiet', '--orphan', `round-${n}`]);
      await writeFile(path.join(work, 'file'), randomBytes(ROUND_BYTES));
      await git(work, ['add', 'file']);
      await git(work, ['commit', '--quiet', '-m', `Round ${n}`]);
      const url = await createRepository(strata, attacker, `round-${n}`);
      const { body } = await api(strata, attacker.token, 'GET', `/v1/repos/mallory/round-${n}`);
      const pushed = await tryGit(work, ['push', '--quiet', url, 'HEAD:main']);
      if (pushed.code === 0) deleted.push((body as { readonly id: string }).id);
      else refusals.push(pushed.stderr);
      assert.equal((await api(strata, attacker.token, 'DELETE', `/v1/repos/mallory/round-${n}`)).status, 204);
    };

    const attack = async (): Promise<void> => {
      for (let n = 0; n < ROUNDS; n += 1) await round(n);
    };
    await underAttack(context, stage, 'deleted repositories', attack, { diskBytesMax: DISK_BYTES_MAX });

    assert.equal(deleted.length, ACCEPTED);
    assert.equal(refusals.length, ROUNDS - ACCEPTED);
    for (const refusal of refusals) assert.match(refusal, REFUSED);
    const filled = await usage(stage);
    assert.ok(filled.storage > ACCEPTED * ROUND_BYTES && filled.storage <= QUOTA_BYTES, `${filled.storage}`);
    assert.equal(filled.deleted, filled.storage, 'all of it is deleted');

    const [first = assert.fail(), second = assert.fail()] = deleted;
    assert.equal((await api(strata, attacker.token, 'POST', `/v1/repositories/${first}/restore`)).status, 200);
    const back = await usage(stage);
    assert.equal(back.storage, filled.storage, 'an undeletion takes nothing more');
    assert.ok(back.deleted > 0 && back.deleted < back.storage);
    assert.equal((await api(strata, attacker.token, 'POST', `/v1/repositories/${second}/purge`)).status, 202);
    assert.deepEqual(await usage(stage), { storage: back.storage - back.deleted, deleted: 0 });
    const url = await createRepository(strata, attacker, 'after-the-purge');
    await git(work, ['push', '--quiet', url, 'HEAD:main']);
    const { projections } = (await admin(strata, ['projections', 'rebuild', '--verify'])) as {
      readonly projections: readonly { readonly differences: number }[];
    };
    assert.ok(projections.length > 0 && projections.every(({ differences }) => differences === 0));
  });
});
