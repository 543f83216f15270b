/** The order of the rooms, with an import that each neighbouring pair must refuse and one that it must accept. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ROOM_ORDERS, roomOrderViolations } from './room-order.ts';
import { projectTree, treeOf } from './source-tree.ts';

/** Returns the path of a source in the room. */
function sourceIn(room: string): string {
  return room.endsWith('.ts') ? room : `${room}/sample.ts`;
}

function importing(from: string, target: string): string[] {
  const up = '../'.repeat(sourceIn(from).split('/').length - 1);
  const text = `import type { A } from '${up}${sourceIn(target)}';\n`;
  return roomOrderViolations(treeOf({ [sourceIn(from)]: text, [sourceIn(target)]: '' }));
}

test('no import of the project points to a room above its own', () => {
  assert.deepEqual(roomOrderViolations(projectTree()), []);
});

for (const [folder, rooms] of Object.entries(ROOM_ORDERS)) {
  describe(`in ${folder}`, () => {
    for (const [at, lower] of rooms.entries()) {
      const upper = rooms[at + 1];
      if (upper === undefined) continue;
      test(`refuses ${lower} importing ${upper}`, () => assert.equal(importing(lower, upper).length, 1));
      test(`accepts ${upper} importing ${lower}`, () => assert.deepEqual(importing(upper, lower), []));
    }

    test('refuses a room importing one that is several above it', () => {
      assert.equal(importing(rooms[0] ?? '', rooms.at(-1) ?? '').length, 1);
    });
  });
}

test('refuses a source of core and of the apps that belongs to no room', () => {
  assert.deepEqual(roomOrderViolations(treeOf({ 'core/new-folder/a.ts': '' })), [
    'core/new-folder/a.ts belongs to no room of core',
  ]);
  assert.equal(roomOrderViolations(treeOf({ 'apps/new-app/a.ts': '' })).length, 1);
  assert.equal(roomOrderViolations(treeOf({ 'core/use-cases/a.ts': '' })).length, 1);
});
