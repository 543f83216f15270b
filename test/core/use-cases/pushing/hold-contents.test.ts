/** The room that a request has for the contents of a commit, with the real disk. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { DEFAULT_PLANS, type PlanQuotas } from '../../../../core/account/plans.ts';
import { holdContents } from '../../../../core/use-cases/pushing/hold-contents.ts';
import { type GitReading, startGitReading } from '../../../support/git-reading.ts';
import { once } from '../../../support/object-database.ts';

const USED = { storageBytes: 1_000, transferBytes: 0, ingressBytes: 2_000 };

describe('The contents of a request', () => {
  let reading: GitReading;
  beforeEach(async () => {
    reading = await startGitReading();
  });
  afterEach(() => reading.close());

  async function hold(quotas: Partial<PlanQuotas>) {
    const repository = await reading.current();
    const plan = { ...DEFAULT_PLANS.PRO, ...quotas };
    const context = {
      usage: { usageOf: async () => USED },
      plans: { FREE: plan, PRO: plan, PLATFORM: plan },
      newContents: reading.database.database.newContents,
    };
    return holdContents(context, { repository, signal: new AbortController().signal });
  }

  test('have what the quotas of their account leave, and are refused with the quota that they exceed', async () => {
    for (const [storage_bytes, ingress_bytes, code] of [
      [6_000, 50_000, 'storage-quota-reached'],
      [50_000, 7_000, 'ingress-quota-reached'],
    ] as const) {
      const held = await hold({ storage_bytes, ingress_bytes });
      if ('refused' in held) assert.fail(held.refused.code);
      const first = await held.add(once(randomBytes(4_000)));
      assert.ok('id' in first);
      assert.deepEqual(await held.add(once(randomBytes(1_000))), { refused: { code } });
      await held.remove();
    }
  });

  test('are refused before they are read where a quota is used up', async () => {
    assert.deepEqual(await hold({ storage_bytes: 1_000 }), { refused: { code: 'storage-quota-reached' } });
    assert.deepEqual(await hold({ ingress_bytes: 2_000 }), { refused: { code: 'ingress-quota-reached' } });
  });
});
