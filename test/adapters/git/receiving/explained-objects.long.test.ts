/**
 * How many commits, trees and tags of a refused pack are looked at: a pack of 200,000 commits takes seconds to make.
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { EXPLAINED_OBJECTS_MAX } from '../../../../adapters/git/receiving/explain-refusal.ts';
import { EMPTY_TREE } from '../../../support/hostile-packs.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';

const WHO = 'A <a@example.org> 1700000000 +0000';
const MISSING = '1'.repeat(40);

let db: TestDatabase;
beforeAll(async () => {
  db = await testDatabase();
});
afterAll(() => db.close());

const commitOf = (tree: string, parent: string, text: string): Buffer =>
  Buffer.from(`tree ${tree}\n${parent}author ${WHO}\ncommitter ${WHO}\n\n${text}\n`);

/** This many commits of the empty tree. */
function fillers(count: number): Buffer[] {
  return Array.from({ length: count }, (_, n) =>
    rawEntry({ type: 'commit', bytes: commitOf(EMPTY_TREE, '', String(n)) }),
  );
}

async function refusalOf(pack: Buffer): Promise<string> {
  const received = await db.receive(db.newObjects(), pack);
  assert.ok('refused' in received);
  return received.detail;
}

describe(`Of ${EXPLAINED_OBJECTS_MAX} commits of a refused pack`, () => {
  let before: Buffer[];
  beforeAll(() => {
    before = fillers(EXPLAINED_OBJECTS_MAX);
  });

  test('the last is looked at for the way to a bad object, and not one more', async () => {
    const blob = Buffer.from('x');
    const tree = Buffer.concat([Buffer.from('100644 .git\0'), Buffer.from(rawId('blob', blob), 'hex')]);
    const bad = rawId('tree', tree);
    const leading = commitOf(bad, '', 'leads to it');
    const last = [
      rawEntry({ type: 'commit', bytes: leading }),
      rawEntry({ type: 'tree', bytes: tree }),
      rawEntry({ type: 'blob', bytes: blob }),
    ];
    const at = await refusalOf(rawPack([...before.slice(1), ...last]));
    assert.match(at, new RegExp(`^object ${bad}: hasDotgit: .* \\(a tree: the root folder in commit `));
    const beyond = await refusalOf(rawPack([...before, ...last]));
    assert.match(beyond, new RegExp(`^object ${bad}: hasDotgit: .* \\(a tree\\)$`));
  });

  test('the last is looked at for a missing parent, and not one more', async () => {
    const child = commitOf(EMPTY_TREE, `parent ${MISSING}\n`, 'has a parent');
    const last = rawEntry({ type: 'commit', bytes: child });
    const place = ` (a commit: parent of commit ${rawId('commit', child)})`;
    const at = await refusalOf(rawPack([...before.slice(1), last]));
    const beyond = await refusalOf(rawPack([...before, last]));
    assert.match(beyond, new RegExp(`^object ${MISSING} is referred to`));
    assert.equal(at, beyond + place);
  });
});
