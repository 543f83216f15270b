/** Small packs that are joined by copying their entries, against what the real git reads in them. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { deltaHeader, entryHeader, wholeHeader } from '../../../../adapters/git/packs/entry-header.ts';
import { createTurns } from '../../../../adapters/git/packs/event-loop-turns.ts';
import { joinable, joinPacks, type PackBytes } from '../../../../adapters/git/packs/joined-pack.ts';
import { packIndexFile, packIndexRows } from '../../../../adapters/git/packs/pack-index-file.ts';
import { runGit, type TestRepository, temporaryFolder, testRepository } from '../../../support/git.ts';
import { deltaSize, rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';
import { createDice } from '../../../support/seeded.ts';

const folder = temporaryFolder('joined-pack');
afterAll(() => folder.remove());
let folders = 0;

const turns = () => createTurns(2);

function newFolder(): string {
  const path = join(folder.path, `part-${(folders += 1)}`);
  mkdirSync(join(path, 'pack'), { recursive: true });
  return path;
}

/** The pack, completed and indexed by git. */
function indexed(repository: TestRepository, pack: Buffer): PackBytes {
  const path = newFolder();
  const answer = repository.line(['index-pack', '--stdin', '--fix-thin'], {
    input: pack,
    env: { GIT_OBJECT_DIRECTORY: path, GIT_ALTERNATE_OBJECT_DIRECTORIES: join(repository.path, '.git/objects') },
  });
  const file = (extension: string) => join(path, 'pack', `pack-${answer.replace('pack\t', '')}.${extension}`);
  return { pack: readFileSync(file('pack')), idx: readFileSync(file('idx')) };
}

function idsOf({ idx }: PackBytes): readonly string[] {
  return packIndexRows(idx).map(({ id }) => id.toString('hex'));
}

/** What git says of each object of a pack: its id, type, size and, of a delta, how deep it is. */
function verified(pack: Buffer) {
  const path = join(newFolder(), 'joined.pack');
  writeFileSync(path, pack);
  runGit(['index-pack', path]);
  const said = runGit(['verify-pack', '-v', path]).toString();
  const objects = said.matchAll(/^([0-9a-f]{40}) (\w+) +(\d+) \d+ \d+(?: (\d+))?/gm);
  return Array.from(objects, ([, id, , , depth]) => ({ id: id ?? '', depth: Number(depth ?? 0) }));
}

/** Thin packs of commits one by one, each of which changes a line of one file and adds another. */
function history(name: string, commits: number): { readonly repository: TestRepository; readonly parts: PackBytes[] } {
  const repository = testRepository(join(folder.path, name));
  const lines = Array.from({ length: 60 }, (_, line) => `line ${line} of ${name}`);
  const parts: PackBytes[] = [];
  let before: string | null = null;
  for (let index = 0; index < commits; index += 1) {
    lines[index % lines.length] = `changed ${index}`;
    const commit = repository.commit({ 'folder/text': lines.join('\n'), [`folder/${index}`]: `${index}\n` });
    const revisions: string[] = before === null ? [commit] : [commit, `^${before}`];
    parts.push(indexed(repository, repository.pack(revisions, { thin: true })));
    before = commit;
  }
  return { repository, parts };
}

describe('Joined packs', () => {
  test('hold every object of their parts once, and git reads each', async () => {
    const { parts } = history('chain', 70);
    const dice = createDice(7);
    for (const order of [parts, parts.toReversed(), parts.toSorted(() => dice.below(3) - 1)]) {
      const joined = (await joinPacks(order, turns())) ?? assert.fail('not joined');
      const objects = verified(joined.bytes);
      assert.deepEqual(objects.map(({ id }) => id).toSorted(), [...new Set(parts.flatMap(idsOf))].toSorted());
      assert.deepEqual(objects.map(({ id }) => id).toSorted(), [...joined.ids].toSorted());
      assert.equal(joined.bytes.subarray(-20).toString('hex'), joined.name);
      const depths = objects.map(({ depth }) => depth);
      assert.ok(Math.max(...depths) <= 51, `${Math.max(...depths)} deltas`);
      assert.ok(depths.filter((depth) => depth > 0).length > 100, 'deltas stay deltas');
    }
  });

  test('can be joined again with what came later, and take less room than their parts', async () => {
    const { parts } = history('again', 30);
    const { bytes } = (await joinPacks(parts.slice(0, 20), turns())) ?? assert.fail();
    const repository = testRepository(join(folder.path, 'elsewhere'));
    const first = indexed(repository, bytes);
    const joined = (await joinPacks([...parts.slice(20), first], turns())) ?? assert.fail();
    assert.deepEqual(
      verified(joined.bytes)
        .map(({ id }) => id)
        .toSorted(),
      [...new Set(parts.flatMap(idsOf))].toSorted(),
    );
    assert.ok(joined.bytes.length < parts.reduce((sum, { pack }) => sum + pack.length, 0) * 0.8);
  });

  test('are missing where objects of two parts are made from each other and neither is whole', async () => {
    const [a, b] = [Buffer.from('a\n'), Buffer.from('b\n')];
    const [idOfA, idOfB] = [rawId('blob', a), rawId('blob', b)];
    const to = (bytes: Buffer) => Buffer.concat([deltaSize(2), deltaSize(2), Buffer.from([2]), bytes]);
    const partOf = (id: string, bytes: Buffer, base: string): PackBytes => {
      const pack = rawPack([rawEntry({ type: 'ref-delta', bytes: to(bytes), base })]);
      const rows = [{ id: Buffer.from(id, 'hex'), offset: 12, crc32: 0 }];
      return { pack, idx: packIndexFile(rows, pack.subarray(-20)) };
    };
    const [partA, partB] = [partOf(idOfA, a, idOfB), partOf(idOfB, b, idOfA)];
    assert.equal(await joinPacks([partA, partB], turns()), null);
    const whole = rawPack([rawEntry({ type: 'blob', bytes: b })]);
    const wholeB = {
      pack: whole,
      idx: packIndexFile([{ id: Buffer.from(idOfB, 'hex'), offset: 12, crc32: 0 }], whole.subarray(-20)),
    };
    for (const parts of [
      [partA, partB, wholeB],
      [wholeB, partB, partA],
    ]) {
      const joined = (await joinPacks(parts, turns())) ?? assert.fail();
      const ids = verified(joined.bytes).map(({ id }) => id);
      assert.deepEqual(ids.toSorted(), [idOfA, idOfB].toSorted());
    }
  });

  test('are refused when a part is broken', async () => {
    const pack = rawPack([rawEntry({ type: 'blob', bytes: Buffer.from('a\n') })]);
    const idx = packIndexFile([{ id: Buffer.alloc(20), offset: 12, crc32: 0 }], pack.subarray(-20));
    await assert.rejects(joinPacks([{ pack, idx: idx.subarray(1) }], turns()), /no index/);
    await assert.rejects(joinPacks([{ pack, idx: idx.subarray(0, -1) }], turns()), /no index/);
    const far = packIndexFile([{ id: Buffer.alloc(20), offset: 500, crc32: 0 }], pack.subarray(-20));
    await assert.rejects(joinPacks([{ pack, idx: far }], turns()), /broken at byte 500/);
    const lost = rawPack([rawEntry({ type: 'ofs-delta', bytes: Buffer.from([1, 1, 1, 65]), distance: 5 })]);
    await assert.rejects(joinPacks([{ pack: lost, idx }], turns()), /has no base/);
  });

  test('are the smallest ones, up to a mebibyte, ten thousand objects and 1,024 packs', () => {
    const sizes = (packBytes: number, objects = 1) => ({ packBytes, idxBytes: 1_072 + 28 * objects });
    const chosen = (...packs: readonly ReturnType<typeof sizes>[]) => joinable(packs).map(({ packBytes }) => packBytes);
    assert.deepEqual(chosen(sizes(900_000), sizes(300), sizes(200_000)), [300, 200_000]);
    assert.deepEqual(chosen(sizes(2 ** 20 - 300), sizes(300)), [300, 2 ** 20 - 300]);
    assert.deepEqual(chosen(sizes(100, 9_999), sizes(200, 1), sizes(300, 1)), [100, 200]);
    assert.equal(chosen(...Array.from({ length: 1_500 }, () => sizes(100))).length, 1_024);
    assert.deepEqual(chosen(), []);
  });

  test('end when their work is cancelled', async () => {
    const { parts } = history('cancelled', 2);
    const cancelled = { isOver: () => true, next: () => Promise.reject(new Error('cancelled')) };
    await assert.rejects(joinPacks(parts, cancelled), /cancelled/);
  });
});

describe('The header of an entry', () => {
  test('is read as it was written, at every length', () => {
    const numbers = [1, 15, 16, 127, 128, 2_047, 2_048, 16_383, 16_511, 16_512, 2_113_663, 2_113_664, 2 ** 31, 2 ** 40];
    for (const sizeBytes of numbers) {
      const whole = wholeHeader('tree', sizeBytes);
      assert.deepEqual(entryHeader(whole), { type: 'tree', base: null, sizeBytes, length: whole.length });
      for (const distance of numbers) {
        const delta = deltaHeader(sizeBytes, distance);
        assert.deepEqual(entryHeader(delta), { type: null, base: distance, sizeBytes, length: delta.length });
      }
    }
  });
});
