/**
 * The attack: an account begins more answers than wait for slow readers, and reads none of them. What found no room on
 * the disk and no slot in time was an outage in the log, as if the service had failed.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { ReaderTooSlow } from '../../../../core/kernel/reader-too-slow.ts';
import type { ObjectReader } from '../../../../core/ports/object-database.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';

const MIB = 1024 * 1024;
/** More than sockets, pipes and the disk for answers hold, so that git waits for its reader. */
const FILE_BYTES = 8 * MIB;
/** Slots for slow readers of an account. */
const SLOTS = 2;

describe('An answer that waits for a slow reader', () => {
  const folder = temporaryFolder('slow-readers');
  const repository = testRepository(join(folder.path, 'repository'));
  const { signal } = new AbortController();
  let database: TestDatabase;
  let reader: ObjectReader;
  let tip: ObjectId;
  let noise: ObjectId;

  beforeAll(async () => {
    database = await testDatabase({ cacheBytesMax: MIB, pacedWaitMs: 300 });
    tip = repository.commit({ noise: randomBytes(FILE_BYTES) });
    noise = objectId(repository.line(['rev-parse', `${tip}:noise`]));
    reader = await database.database.open(await database.push(database.newObjects(), repository.pack([tip])));
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });

  const view = () => ({
    key: 'all',
    head: 'refs/heads/main',
    runs: [[{ name: 'refs/heads/main', id: tip, peeled: null }]],
  });
  const lines = () => ['0011command=fetch', '0001', `0032want ${tip}\n`, '0009done\n', '0000'];
  const fetched = (answerKey: string | null) =>
    reader.uploadPack({ view: view(), protocol: 2, request: once(Buffer.from(lines().join(''))), answerKey, signal });

  const kinds: readonly (readonly [string, (at: number) => AsyncIterable<Uint8Array>])[] = [
    ['a large file', () => reader.blob(noise)],
    ['a fetch', () => fetched(null)],
    ['a fetch whose answer may be kept', (at) => fetched(`key ${at}`)],
  ];
  for (const [name, read] of kinds) {
    test(`and finds neither room nor a slot ends as its reader's doing: ${name}`, async () => {
      const begun = Array.from({ length: SLOTS + 1 }, (_, at) => read(at)[Symbol.asyncIterator]());
      for (const chunks of begun) assert.equal((await chunks.next()).done, false);
      const ends = await Promise.allSettled(begun.map(unread));
      const reasons = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
      assert.equal(reasons.length, 1, String(reasons));
      assert.ok(reasons[0] instanceof ReaderTooSlow, String(reasons[0]));
      assert.deepEqual(database.warnings, []);
    });
  }
});

/** Reads nothing until those without a slot were given up, and then one chunk after another. */
async function unread(chunks: AsyncIterator<Uint8Array>): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  for (let done = false; !done; ) done = (await chunks.next()).done ?? true;
}
