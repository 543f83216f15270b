/** Contents of files that wait on the disk for their commit, read by git. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readlink } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type AccountId, uuid } from '../../../../core/kernel/ids.ts';
import type { HeldContents, StoredBlob } from '../../../../core/ports/new-contents.ts';
import { filesBelow } from '../../../support/files-below.ts';
import { NO_PROC } from '../../../support/git-below.ts';
import { once, type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { skippedFor } from '../../../support/skipped.ts';
import { git } from '../../../support/strata.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const MIB = 1024 * 1024;
const ARRIVING = 8 * MIB;
const ADA = uuid<AccountId>('0190f3e2-7c1a-7b4e-9a35-0000000000aa');

describe('Contents on the disk', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    const kept = { bytes: 0, accountBytesMax: 0 };
    db = await testDatabase({ incoming: { bytesMax: ARRIVING, accountBytesMax: ARRIVING, kept } });
  });
  afterAll(() => db.close());

  function hold(bytesMax = Number.POSITIVE_INFINITY, signal = new AbortController().signal): HeldContents {
    return db.database.newContents.hold({ account: ADA, bytesMax, signal });
  }

  async function stored(held: HeldContents, bytes: Uint8Array): Promise<StoredBlob> {
    const added = await held.add(once(bytes));
    if ('refused' in added) assert.fail(added.refused);
    return added;
  }

  async function refusal(held: HeldContents, bytes: Uint8Array): Promise<string> {
    const added = await held.add(once(bytes));
    return 'refused' in added ? added.refused : assert.fail('It was taken');
  }

  /** The files without names that this process has open on the cache's disk. */
  async function openFiles(): Promise<readonly string[]> {
    const names = await readdir('/proc/self/fd');
    const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
    return targets.filter((target) => target.endsWith('/contents (deleted)'));
  }

  const namedFiles = () => filesBelow(path.join(db.directory, 'incoming'));

  test('have the ids that git gives them, and are in a pack that git reads, however often it is made', async (context) => {
    const contents = [
      new Uint8Array(0),
      Buffer.from('text\r\n'),
      randomBytes(65_536),
      new Uint8Array(MIB).fill(97),
      randomBytes(MIB + 1),
    ];
    const held = hold();
    const blobs: StoredBlob[] = [];
    for (const content of contents) blobs.push(await stored(held, content));
    for (let n = 0; n < 2; n += 1) {
      const bare = path.join(await tempDir(context), 'bare.git');
      await git(path.dirname(bare), ['init', '--quiet', '--bare', bare]);
      const pack = Buffer.concat(await Array.fromAsync(db.database.newObjects.pack(blobs)));
      await git(bare, ['unpack-objects', '--strict', '-q'], pack);
      await git(bare, ['fsck', '--full', '--strict', '--no-dangling']);
      for (const [index, content] of contents.entries()) {
        const { id = '', sizeBytes } = blobs[index] ?? {};
        assert.equal((await git(bare, ['hash-object', '--stdin'], content)).trim(), id);
        assert.equal((await git(bare, ['cat-file', '-s', id])).trim(), String(content.length));
        assert.equal(sizeBytes, content.length);
      }
    }
    await held.remove();
  });

  test(
    'have no names on the disk, so that a crash leaves nothing of them, and are freed when they are removed',
    skippedFor(NO_PROC),
    async () => {
      const held = hold();
      assert.deepEqual(await openFiles(), []);
      const blob = await stored(held, randomBytes(1_000));
      assert.deepEqual(await namedFiles(), []);
      assert.equal((await openFiles()).length, 2);
      await held.remove();
      await held.remove();
      assert.deepEqual(await openFiles(), []);
      await assert.rejects(Array.fromAsync(blob.deflated()));
    },
  );

  test('count among the packs that arrive, as they are stored, until they are removed', async () => {
    const [first, second] = [hold(), hold()];
    await stored(first, randomBytes(3 * MIB));
    // What is in them takes no room any more once it is deflated.
    await stored(first, new Uint8Array(4 * MIB));
    assert.equal(await refusal(second, randomBytes(5 * MIB)), 'too-much-at-once');
    await first.remove();
    await second.remove();
    const third = hold();
    await stored(third, randomBytes(3 * MIB));
    await third.remove();
  });

  test('are together as large as a pack may be, and no larger', async () => {
    const content = randomBytes(10_000);
    const measured = hold();
    const { deflated } = await stored(measured, content);
    const sizeBytes = Buffer.concat(await Array.fromAsync(deflated())).length;
    await measured.remove();
    const [exact, tight] = [hold(2 * sizeBytes), hold(2 * sizeBytes - 1)];
    for (const held of [exact, tight]) await stored(held, content);
    await stored(exact, content);
    assert.equal(await refusal(tight, content), 'pack-too-large');
    await Promise.all([exact.remove(), tight.remove()]);
  });

  test('whose source breaks, or whose client has left, end with that error, and leave nothing', async () => {
    const broken = hold();
    async function* breaking(): AsyncGenerator<Uint8Array> {
      yield randomBytes(100_000);
      throw new Error('The connection broke');
    }
    await assert.rejects(broken.add(breaking()), /The connection broke/);
    await broken.remove();
    const client = new AbortController();
    const left = hold(ARRIVING, client.signal);
    client.abort(new Error('The client left'));
    await assert.rejects(left.add(once(randomBytes(10))), /The client left/);
    await left.remove();
    assert.deepEqual(await namedFiles(), []);
    // Nothing of them is counted any more.
    const whole = hold();
    await stored(whole, randomBytes(3 * MIB));
    await whole.remove();
  });
});
