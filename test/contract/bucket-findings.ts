/** The contract of core/ports/bucket-findings.ts, run on every adapter. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import type { StorageBucketId } from '../../core/kernel/ids.ts';
import { vaultRef } from '../../core/kernel/vault-ref.ts';
import type { BucketFindingRows, FoundAt } from '../../core/ports/bucket-findings.ts';
import type { Ending } from '../support/cleanup.ts';
import { newAccount } from '../support/events.ts';

const FIRST = vaultRef('a'.repeat(64));
const SECOND = vaultRef('b'.repeat(64));
const BOTH = { conditionalWrites: true, checksBodies: true };
const NEITHER = { conditionalWrites: false, checksBodies: false };

export function bucketFindingsContract(name: string, open: (context: Ending) => Promise<BucketFindingRows>): void {
  const newPlace = (account = newAccount()): FoundAt => ({
    ...{ account, bucket: uuids.next<StorageBucketId>(), place: FIRST },
  });

  describe(`findings about buckets on ${name}`, () => {
    test('are the last of the bucket, and of its place', async (context) => {
      const rows = await open(context);
      const at = newPlace();
      assert.equal(await rows.find(at), null);
      await rows.note(at, NEITHER);
      await rows.note(at, { ...BOTH, checksBodies: false });
      assert.deepEqual(await rows.find(at), { ...BOTH, checksBodies: false });
      assert.equal(await rows.find({ ...at, place: SECOND }), null, 'another place of the bucket');
      assert.equal(await rows.find({ ...at, account: newAccount() }), null, 'another account');
      await rows.note({ ...at, place: SECOND }, BOTH);
      assert.deepEqual([await rows.find({ ...at, place: SECOND }), await rows.find(at)], [BOTH, null]);
    });

    test('go with their bucket, and with their account', async (context) => {
      const rows = await open(context);
      const first = newPlace();
      const [second, foreign] = [newPlace(first.account), newPlace()];
      for (const at of [first, second, foreign]) await rows.note(at, BOTH);
      await rows.remove(first.account, first.bucket);
      assert.deepEqual([await rows.find(first), await rows.find(second)], [null, BOTH]);
      await rows.remove(first.account, null);
      assert.deepEqual([await rows.find(second), await rows.find(foreign)], [null, BOTH]);
    });
  });
}
