/** How many new commits of a push are held in memory, and how much of them. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Commit } from '../../../../core/git/objects.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import type { ObjectReader, WalkOptions } from '../../../../core/ports/object-database.ts';
import {
  newCommitsOf,
  WEBHOOK_PUSH_COMMITS_HELD_MAX,
  WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX,
} from '../../../../core/use-cases/webhooks/new-commits-of-push.ts';

/** What a parent counts. */
const PARENT_LENGTH = 64;
const idOf = (n: number): ObjectId => objectId(n.toString(16).padStart(40, '0'));

/** Asks for the new commits of one created branch. Returns how often git walked: once more if they were not held. */
async function walksFor(count: number, each: Partial<Commit> = {}, last: Partial<Commit> = {}): Promise<number> {
  const nobody = { name: '', email: '', seconds: 0, offsetMinutes: 0 };
  const bare = { tree: idOf(0), parents: [], author: nobody, committer: nobody, message: '' };
  let walks = 0;
  const reader: Pick<ObjectReader, 'lookup' | 'walk' | 'commits'> = {
    lookup: async (ids) => ids.map((id) => ({ id, type: 'commit', sizeBytes: 1 })),
    async *walk({ limit = count }: WalkOptions) {
      walks += 1;
      for (let n = count; n > Math.max(0, count - limit); n -= 1) yield idOf(n);
    },
    commits: async (ids) => ids.map((id) => ({ ...bare, ...each, id, ...(id === idOf(1) ? last : {}) })),
  };
  const update = { ref: 'refs/heads/a', before: idOf(0), after: idOf(count), type: 'commit', peeled: null };
  const updates = [{ ...update, kind: 'create' }] as never;
  const commits = await newCommitsOf(reader as never, { refs: new Map() } as never, updates, updates);
  const [newest] = await commits.of({ ...update, kind: 'create' } as never);
  assert.equal(newest?.id, idOf(count));
  return walks;
}

describe('The new commits of a push', () => {
  test('are held up to their number, and of one more the newest of each ref are read', async () => {
    assert.equal(await walksFor(WEBHOOK_PUSH_COMMITS_HELD_MAX), 1);
    assert.equal(await walksFor(WEBHOOK_PUSH_COMMITS_HELD_MAX + 1), 2);
  });

  test('are held up to the length of their texts and parents, and not one character more', async () => {
    const count = 512;
    const parents = Array<ObjectId>(WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX / PARENT_LENGTH / count).fill(idOf(0));
    assert.equal(await walksFor(count, { parents }), 1);
    assert.equal(await walksFor(count, { parents }, { message: 'x' }), 2);
  });
});
