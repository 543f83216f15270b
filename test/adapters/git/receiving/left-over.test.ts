/** What a pack holds beyond what its tips lead to: git rev-list says what they reach, over packs that a seed makes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { objectId } from '../../../../core/kernel/ids.ts';
import type { CommittedObjects, Quarantine } from '../../../../core/ports/object-database.ts';
import { runGit, temporaryFolder } from '../../../support/git.ts';
import {
  blob,
  commit,
  deltaOf,
  pack,
  packEntry,
  packOfEntries,
  tree,
  type WireObject,
  wireObject,
} from '../../../support/git-wire.ts';
import { loggingGit } from '../../../support/logging-git.ts';
import { type TestDatabase, testDatabase } from '../../../support/object-database.ts';
import { createDice, type Dice } from '../../../support/seeded.ts';

const NEVER = new AbortController().signal;
const ROUNDS = 24;
const SEED = 30;
/** More objects than a pack may have that is checked in process. */
const MANY = 600;

const file = blob('committed\n');
const folder = tree([{ mode: '100644', name: 'file', id: file.id }]);
const first = commit('first', folder.id);
/** Nothing refers to it. */
const deleted = commit('of a deleted branch', folder.id, [first.id]);
const COMMITTED = [file, folder, first, deleted];

function tag(target: WireObject, name: string): WireObject {
  return wireObject(
    'tag',
    `object ${target.id}\ntype ${target.type}\ntag ${name}\ntagger A <a@b.c> 1 +0000\n\n${name}\n`,
  );
}

/** Objects that refer to each other, and to committed ones. */
function madeObjects(dice: Dice, round: number): WireObject[] {
  const made: WireObject[] = [];
  const anyOf = (type: WireObject['type']) => dice.pick([...COMMITTED, ...made].filter((one) => one.type === type));
  // A name that is not ASCII leaves the whole pack to git.
  const name = dice.chance(0.3) ? 'ä' : 'a';
  const count = 2 + dice.below(12);
  for (let n = 0; n < count; n += 1) {
    const text = `${round} ${n}\n`;
    switch (dice.below(5)) {
      case 0:
        made.push(blob(text));
        break;
      case 1: {
        const own = blob(`own ${text}`);
        const entries = [
          { mode: '100644', name, id: anyOf('blob').id },
          { mode: '100644', name: `${name}-${round}-${n}`, id: own.id },
          { mode: '40000', name: `${name}0`, id: anyOf('tree').id },
        ];
        made.push(own, tree(entries));
        break;
      }
      case 2:
        if (dice.chance(0.3)) made.push(tag(dice.pick([...COMMITTED, ...made]), `t${round}-${n}`));
        break;
      default:
        made.push(commit(text, anyOf('tree').id, dice.chance(0.7) ? [anyOf('commit').id] : []));
    }
  }
  if (dice.chance(0.2)) {
    const files = Array.from({ length: MANY }, (_, n) => blob(`${round} many ${n}`));
    const entries = files.map(({ id }, n) => ({ mode: '100644', name: `f${String(n).padStart(4, '0')}`, id }));
    const wide = tree(entries);
    made.push(...files, wide, commit(`many ${round}`, wide.id, [anyOf('commit').id]));
  }
  if (made.length === 0) made.push(commit(`only ${round}`, folder.id));
  return [...new Map(made.map((one) => [one.id, one])).values()];
}

describe('What a pack holds beyond what its tips reach', () => {
  const temporary = temporaryFolder('left-over');
  const log = join(temporary.path, 'commands');
  let database: TestDatabase;
  let objects: CommittedObjects;

  beforeAll(async () => {
    database = await testDatabase({ gitPath: loggingGit(log) });
    objects = await database.push(database.newObjects(), pack(COMMITTED));
  });
  afterAll(async () => {
    await database.close();
    temporary.remove();
  });

  const accepted = async (packed: Buffer, into = objects): Promise<Quarantine> => {
    const received = await database.receive(into, packed);
    assert.ok(!('refused' in received), JSON.stringify(received));
    return received;
  };
  const idsOf = (some: readonly WireObject[]) => some.map(({ id }) => objectId(id));
  const KNOWN = idsOf([first]);

  test('is found exactly, whoever checks the pack, and left out of the layer', async () => {
    const dice = createDice(SEED);
    const seen = { left: 0, whole: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const made = madeObjects(dice, round);
      const tips = Array.from({ length: 1 + dice.below(3) }, () => dice.pick(dice.chance(0.9) ? made : COMMITTED));
      const reached = reachedBy(temporary.path, made, tips);
      const sent = dice.chance(0.5) ? made : made.filter(({ id }) => reached.has(id));
      const packed = pack([...sent, ...COMMITTED.filter(() => dice.chance(0.1))]);
      const received = await accepted(packed);
      const expected = sent.some(({ id }) => !reached.has(id));
      const what = `seed ${SEED}, round ${round}`;
      assert.equal(await received.leavesOver(idsOf(tips), dice.chance(0.5) ? KNOWN : [], NEVER), expected, what);
      seen[expected ? 'left' : 'whole'] += 1;
      if (!expected) assert.equal(received.pack, packed.toString('hex', packed.length - 20), what);
      if (expected) await received.keepReached(idsOf(tips), KNOWN, NEVER);
      const found = await received.tips(idsOf(sent));
      for (const [index, { id }] of sent.entries())
        assert.equal(found[index] !== null, reached.has(id), `${what} ${id}`);
      await received.discard();
    }
    assert.ok(seen.left > 5 && seen.whole > 5, JSON.stringify(seen));
  });

  test('is not what the client sent again, nor a base that git appended', async () => {
    const other = blob('committed, and more\n');
    const next = commit('next', tree([{ mode: '100644', name: 'ä', id: other.id }]).id, [deleted.id]);
    const entries = [
      packEntry('ref-delta', deltaOf(file.bytes, other.bytes), { base: Buffer.from(file.id, 'hex') }),
      ...[next, tree([{ mode: '100644', name: 'ä', id: other.id }])].map(({ type, bytes }) => packEntry(type, bytes)),
    ];
    const again = [folder, deleted].map(({ type, bytes }) => packEntry(type, bytes));
    for (const [packed, count] of [
      [packOfEntries(entries), 4],
      [packOfEntries([...entries, ...again]), 6],
    ] as const) {
      for (const known of [KNOWN, []]) {
        const received = await accepted(packed);
        assert.equal(received.objectCount, count);
        assert.equal(await received.leavesOver(idsOf([next]), known, NEVER), false);
        await received.discard();
      }
    }
  });

  test('takes no git for a small pack, and one for others', async () => {
    const plain = commit('plain', folder.id, [first.id]);
    const odd = tag(plain, 'odd');
    const before = readFileSync(log, 'utf8').split('\n').length;
    const small = await accepted(pack([plain]));
    assert.equal(await small.leavesOver(idsOf([plain]), KNOWN, NEVER), false);
    await small.discard();
    const received = await accepted(pack([plain, odd]));
    assert.equal(await received.leavesOver(idsOf([odd]), KNOWN, NEVER), false);
    await received.discard();
    const commands = readFileSync(log, 'utf8')
      .split('\n')
      .slice(before - 1, -1);
    assert.deepEqual(
      commands.map((line) => line.split(' ')[0]),
      ['index-pack', 'pack-objects'],
    );
  });

  test('is what the client sent again, once the layers have lost it', async () => {
    const next = commit('next', folder.id, [first.id]);
    const lone = blob('in a layer that goes');
    const before = await database.push(objects, pack([lone]));
    const received = await accepted(pack([next, lone]), before);
    assert.equal(await received.leavesOver(idsOf([next]), KNOWN, NEVER), false);
    const after = { ...objects, revision: 5, shrinkEpoch: objects.shrinkEpoch + 1, keptSinceEpoch: null };
    assert.equal(await received.recheck(after), null);
    assert.equal(await received.leavesOver(idsOf([next]), KNOWN, NEVER), true);
    await received.keepReached(idsOf([next]), KNOWN, NEVER);
    assert.equal(received.objectCount, 1);
    await received.discard();
  });
});

/** What git says that the tips reach and the committed layers do not hold. */
function reachedBy(parent: string, made: readonly WireObject[], tips: readonly WireObject[]): ReadonlySet<string> {
  const repository = join(parent, `oracle-${made[0]?.id}`);
  runGit(['init', '-q', '--bare', repository]);
  runGit(['index-pack', '--stdin'], { cwd: repository, input: pack([...COMMITTED, ...made]) });
  const input = `${tips.map(({ id }) => id).join('\n')}\n`;
  const listed = runGit(['rev-list', '--objects', '--no-object-names', '--stdin'], { cwd: repository, input });
  const committed = new Set(COMMITTED.map(({ id }) => id));
  return new Set(
    listed
      .toString()
      .trim()
      .split('\n')
      .filter((id) => !committed.has(id)),
  );
}
