/**
 * Objects that a drop removes, in packs that came while it ran: indexes of the real git, and what their packs were made
 * of.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  createDroppedObjects,
  type DroppedObjectsOptions,
} from '../../../../adapters/git/compacting/dropped-objects.ts';
import { createFilePages } from '../../../../adapters/git/packs/file-pages.ts';
import { runGit, temporaryFolder } from '../../../support/git.ts';
import { blob, pack } from '../../../support/git-wire.ts';

/** More objects than an index has that stays in memory whole. */
const MANY = 5_000;

const folder = temporaryFolder('dropped-objects');
afterAll(() => folder.remove());

/** Which numbers a pack has blobs of: `first` to `end`. */
const PACKS: Readonly<Record<string, readonly [first: number, end: number]>> = {
  replaced: [0, MANY],
  other: [MANY, MANY + 10],
  refs: [0, MANY - 1],
  kept: [0, 5],
  dropped: [MANY - 2, MANY],
  dropsOther: [MANY + 9, MANY + 20],
  fresh: [MANY + 10, MANY + 14],
  manyNew: [MANY + 20, 2 * MANY + 20],
};

beforeAll(() => {
  for (const [name, [first, end]] of Object.entries(PACKS)) {
    const blobs = Array.from({ length: end - first }, (_, n) => blob(`${first + n}\n`));
    const path = join(folder.path, `${name}.pack`);
    writeFileSync(path, pack(blobs));
    runGit(['index-pack', path]);
  }
});

function indexPath(name: string): string {
  return join(folder.path, `${name}.idx`);
}

const ALL: DroppedObjectsOptions = {
  pages: createFilePages({ memoryBytesMax: 2 ** 24 }),
  indexPath,
  replaced: new Set(['replaced', 'other']),
  signal: new AbortController().signal,
};

describe('A pack that came while objects are dropped', () => {
  for (const [later, kept, expected] of [
    [['kept', 'fresh'], ['refs'], false],
    [['fresh', 'dropped'], ['refs'], true],
    [['dropped'], ['refs', 'dropped'], false],
    [['dropsOther'], ['refs'], true],
    [['manyNew'], ['refs'], false],
    [['kept'], [], true],
    [[], [], false],
  ] as const) {
    const holds = expected ? 'holds one' : 'holds none';
    test(`${holds}: ${later.join(', ') || 'no pack'} beside ${kept.join(', ') || 'nothing'}`, async () => {
      const dropped = createDroppedObjects(ALL);
      assert.equal(await dropped.areIn(new Set(later), kept), expected);
    });
  }

  test('is said to hold one beyond a number of look-ups, which all questions share', async () => {
    const later = new Set(['fresh']);
    const enough = createDroppedObjects({ ...ALL, lookupsMax: 16 });
    assert.deepEqual([await enough.areIn(later, ['refs']), await enough.areIn(later, ['refs'])], [false, false]);
    assert.equal(await enough.areIn(later, ['refs']), true);
    const scarce = createDroppedObjects({ ...ALL, lookupsMax: 15 });
    assert.deepEqual([await scarce.areIn(later, ['refs']), await scarce.areIn(later, ['refs'])], [false, true]);
  });

  test('is looked through in turns of the event loop, and no further once the drop is aborted', async () => {
    const names = Array.from({ length: 100 }, (_, n) => `manyNew-${n}`);
    const aborting = new AbortController();
    const dropped = createDroppedObjects({
      ...ALL,
      indexPath: (name) => indexPath(name.replace(/-\d+$/, '')),
      replaced: new Set(['replaced']),
      signal: aborting.signal,
    });
    assert.equal(await dropped.areIn(new Set(names), ['refs']), false);
    aborting.abort(new Error('aborted'));
    await assert.rejects(dropped.areIn(new Set(names.slice(0, 90)), ['refs']), /aborted/);
  });
});
