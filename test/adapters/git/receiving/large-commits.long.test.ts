/**
 * The attack: a push of few bytes with very many commits that could each have too many parents. git would have to read
 * all of them again to look. In a file of its own, since git checks half a gigabyte for each push.
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { PUSH_LARGE_COMMITS_MAX } from '../../../../adapters/git/receiving/pack-bounds.ts';
import { MANY_PARENTS_BYTES_MIN } from '../../../../core/git/object-bounds.ts';
import { cleanUp } from '../../../support/cleanup.ts';
import { commitBytes } from '../../../support/hostile-packs.ts';
import { fullyChecked, testDatabase } from '../../../support/object-database.ts';
import { deltaSize, rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';

/** Commits of the smallest size that leaves room for too many parents; all but the first are deltas of 30 bytes. */
function packOf(commits: number): Buffer {
  const empty = commitBytes([], '').length;
  const base = commitBytes([], 'm'.repeat(MANY_PARENTS_BYTES_MIN - empty));
  const id = rawId('commit', base);
  const copied = Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0]);
  copied.writeUIntLE(base.length - 8, 5, 3);
  const head = Buffer.concat([deltaSize(base.length), deltaSize(base.length), copied, Buffer.from([8])]);
  const deltas = Array.from({ length: commits - 1 }, (_, n) => {
    const bytes = Buffer.concat([head, Buffer.from(String(n).padStart(8, '0'))]);
    return rawEntry({ type: 'ref-delta', base: id, bytes });
  });
  const tree = rawEntry({ type: 'tree', bytes: Buffer.alloc(0) });
  return rawPack([tree, rawEntry({ type: 'commit', bytes: base }), ...deltas]);
}

test('a push may bring as many commits with room for too many parents as the limit says, and no more', async (context) => {
  const db = await testDatabase();
  cleanUp(context, () => db.close());
  const received = await fullyChecked(await db.receive(db.newObjects(), packOf(PUSH_LARGE_COMMITS_MAX)));
  if ('refused' in received) assert.fail(received.detail);
  await received.discard();
  const refused = await fullyChecked(await db.receive(db.newObjects(), packOf(PUSH_LARGE_COMMITS_MAX + 1)));
  assert.deepEqual(refused, {
    refused: 'pack-object-too-large',
    detail: `the pack has more than 10000 commits of ${MANY_PARENTS_BYTES_MIN} bytes or more`,
  });
});
