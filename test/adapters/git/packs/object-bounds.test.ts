/** Objects beyond the bounds, which an older version accepted: a reader refuses them before it inflates them. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { isAncestorNearby } from '../../../../adapters/git/packs/ancestry.ts';
import { commandError } from '../../../../adapters/git/process/git-commands.ts';
import type { ProcessEnd } from '../../../../adapters/git/process/process-runner.ts';
import { COMMIT_BYTES_MAX, TAG_BYTES_MAX, TREE_BYTES_MAX } from '../../../../core/git/object-bounds.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { COMMIT_PARENTS_MAX } from '../../../../core/kernel/limits.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import { commitBytes, EMPTY_TREE, tagBytes } from '../../../support/hostile-packs.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { deltaSize, rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';
import { storeUnchecked } from '../../../support/unchecked-layer.ts';

const tooLarge =
  (message: RegExp) =>
  (error: unknown): boolean =>
    error instanceof ObjectDatabaseError && error.code === 'object-too-large' && message.test(error.message);

describe('a reader', () => {
  let db: TestDatabase;
  beforeAll(async () => {
    db = await testDatabase();
  });
  afterAll(() => db.close());

  test('refuses commits, tags and trees beyond their bounds, and reads the other objects', async () => {
    const empty = Buffer.from(rawId('blob', Buffer.alloc(0)), 'hex');
    const entry = Buffer.concat([Buffer.from(`100644 ${'n'.repeat(220)}\0`), empty]);
    const tree = Buffer.concat(Array<Buffer>(Math.ceil(TREE_BYTES_MAX / entry.length) + 1).fill(entry));
    const root = commitBytes([], 'root');
    const commit = commitBytes([rawId('commit', root)], 'm'.repeat(COMMIT_BYTES_MAX));
    const tag = tagBytes(EMPTY_TREE, 'tree', 'm'.repeat(TAG_BYTES_MAX));
    const wide = commitBytes(Array<string>(COMMIT_PARENTS_MAX + 1).fill(rawId('commit', root)), 'wide');
    const child = commitBytes([rawId('commit', commit)], 'child');
    const raw = rawPack([
      rawEntry({ type: 'tree', bytes: Buffer.alloc(0) }),
      rawEntry({ type: 'blob', bytes: Buffer.alloc(0) }),
      rawEntry({ type: 'tree', bytes: tree }),
      rawEntry({ type: 'tag', bytes: tag }),
      ...[root, commit, wide, child].map((bytes) => rawEntry({ type: 'commit', bytes })),
    ]);
    const reader = await db.database.open(await storeUnchecked(db, raw));
    const idOf = (type: 'commit' | 'tag' | 'tree', bytes: Buffer): ObjectId => objectId(rawId(type, bytes));
    const message = (type: string, bytes: Buffer) => new RegExp(`^${type} [0-9a-f]{40} has ${bytes.length} bytes`);
    await assert.rejects(reader.commit(idOf('commit', commit)), tooLarge(message('commit', commit)));
    await assert.rejects(reader.commits([idOf('commit', commit)]), tooLarge(message('commit', commit)));
    await assert.rejects(reader.tag(idOf('tag', tag)), tooLarge(message('tag', tag)));
    await assert.rejects(reader.tips([idOf('tag', tag)]), tooLarge(message('tag', tag)));
    await assert.rejects(reader.tree(idOf('tree', tree), { offset: 0, limit: 1 }), tooLarge(message('tree', tree)));
    await assert.rejects(reader.commit(idOf('commit', wide)), tooLarge(/has more than 1000 parents$/));
    assert.deepEqual((await reader.commit(idOf('commit', child)))?.parents, [idOf('commit', commit)]);
    assert.equal((await reader.lookup([idOf('commit', commit)]))[0]?.sizeBytes, commit.length);
    // git has other bounds, and still finds the ancestor.
    assert.equal(await reader.isAncestor(idOf('commit', root), idOf('commit', child)), true);
    reader.close();
  });

  test('leaves a long chain of deltas on large objects to git', async () => {
    const large = commitBytes([], 'm'.repeat(COMMIT_BYTES_MAX - 1_000));
    const entries = [rawEntry({ type: 'tree', bytes: Buffer.alloc(0) }), rawEntry({ type: 'commit', bytes: large })];
    let bytes = large;
    for (let made = 0; made < 100; made += 1) {
      const copy = Buffer.from([0xf0, 0, 0, 0]);
      copy.writeUIntLE(bytes.length, 1, 3);
      const delta = Buffer.concat([deltaSize(bytes.length), deltaSize(bytes.length + 1), copy, Buffer.from([1, 0x6d])]);
      entries.push(rawEntry({ type: 'ref-delta', base: rawId('commit', bytes), bytes: delta }));
      bytes = Buffer.concat([bytes, Buffer.from('m')]);
    }
    const reader = await db.database.open(await storeUnchecked(db, rawPack(entries)));
    const commit = await reader.commit(objectId(rawId('commit', bytes)));
    assert.equal(commit?.message.length, COMMIT_BYTES_MAX - 1_000 + 101);
    reader.close();
  });
});

test('isAncestorNearby leaves the walk to git after some hundred commits, however many parents each has', async () => {
  const wide = commitBytes(
    Array.from({ length: 1_000 }, (_, n) => n.toString(16).padStart(40, '0')),
    'wide',
  );
  let reads = 0;
  const source = {
    info: async () => null,
    type: () => null,
    has: async () => true,
    read: async () => {
      reads += 1;
      return { type: 'commit' as const, bytes: reads === 1 ? wide : commitBytes(['f'.repeat(40)], `${reads}`) };
    },
  };
  const answer = await isAncestorNearby(source, objectId('e'.repeat(40)), objectId('d'.repeat(40)));
  assert.equal(answer, null);
  assert.ok(reads <= 256, `${reads} reads`);
});

test('a git process that reached a limit has another error code than one that could not run', () => {
  const command = { args: ['rev-list'], view: { key: '', variables: async () => ({}) } };
  const end = (more: Partial<ProcessEnd>): ProcessEnd => {
    return { code: 128, signal: null, killed: 'no', stdout: '', stderr: '', outgrown: false, ...more };
  };
  const codeOf = (more: Partial<ProcessEnd>) => commandError(command, end(more)).code;
  assert.equal(
    codeOf({ stderr: 'fatal: Out of memory, malloc failed (tried to allocate 16 bytes)' }),
    'reading-too-costly',
  );
  assert.equal(codeOf({ code: null, signal: 'SIGXCPU' }), 'reading-too-costly');
  assert.equal(codeOf({ code: null, signal: 'SIGKILL', killed: 'timeout' }), 'reading-too-costly');
  assert.equal(codeOf({ code: null, signal: 'SIGKILL', killed: 'lost' }), 'object-database-unavailable');
  assert.equal(codeOf({ stderr: 'fatal: bad object' }), 'object-database-unavailable');
});
