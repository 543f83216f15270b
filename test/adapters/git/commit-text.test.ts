/** The text of a commit: what git says of it anywhere, and what it may take of a node. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { EMPTY_TREE_ID, type ObjectId } from '../../../core/kernel/ids.ts';
import type { CommitTextForm, ObjectReader } from '../../../core/ports/object-database.ts';
import { temporaryFolder, testRepository } from '../../support/git.ts';
import { type TestDatabase, testDatabase } from '../../support/object-database.ts';

const { signal } = new AbortController();

describe('The text of a commit', () => {
  const folder = temporaryFolder('commit-text');
  const repository = testRepository(join(folder.path, 'repository'));
  let database: TestDatabase;
  let reader: ObjectReader;
  let first: ObjectId;
  let second: ObjectId;
  let large: ObjectId;

  beforeAll(async () => {
    // The disk of an account holds less than the large text, so that git waits for its reader.
    database = await testDatabase({ processesMax: 1, cacheBytesMax: 16 * 1024 * 1024 });
    // The attack: attributes that hide what changed, or have a program show it.
    const attributes = '* -diff\n*.txt diff=program\n*.bin -text\n';
    first = repository.commit({ '.gitattributes': attributes, 'a.txt': 'one\ntwo\n', 'b.bin': randomBytes(2_000) });
    second = repository.commit({ 'a.txt': null, 'c.txt': 'one\ntwo\n', 'b.bin': randomBytes(2_000), 'ü "q"': 'x' });
    large = repository.commit({ large: randomBytes(8 * 1024 * 1024) });
    const objects = await database.push(database.newObjects(), repository.pack([large]));
    reader = await database.database.open(objects);
  });
  afterAll(async () => {
    reader.close();
    await database.close();
    folder.remove();
  });

  const begin = (commit: ObjectId, parent: ObjectId | null, form: CommitTextForm, ending = signal) =>
    reader.commitText({ commit, parent, form, signal: ending })[Symbol.asyncIterator]();
  async function textOf(commit: ObjectId, parent: ObjectId | null, form: CommitTextForm): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of reader.commitText({ commit, parent, form, signal })) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  test('gives the tree of the commit when git applies it to that of its parent', async () => {
    for (const [commit, parent] of [
      [first, null],
      [second, first],
    ] as const) {
      for (const form of ['diff', 'patch'] as const) {
        repository.git(['read-tree', parent ?? EMPTY_TREE_ID]);
        const text = await textOf(commit, parent, form);
        repository.git(['apply', '--cached', '--binary'], { input: text });
        assert.equal(repository.line(['write-tree']), repository.line(['rev-parse', `${commit}^{tree}`]), form);
        if (parent !== null) assert.ok(!text.includes('program'), 'no attribute names a program that is run');
      }
    }
    assert.match((await textOf(second, first, 'diff')).toString('latin1'), /^rename from a\.txt\nrename to c\.txt$/m);
  });

  test('names neither the version of git nor the machine', async () => {
    const patch = (await textOf(second, first, 'patch')).toString('latin1');
    assert.doesNotMatch(patch, /^-- $/m);
    assert.match(patch, new RegExp(`^From ${second} Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example\\.org>\n`));
  });

  // The attack: ask for large texts and read none of them, until no process is left for anybody's push or page.
  test('takes no slot of other processes, and the next one begins when its reader leaves', async () => {
    const stop = new AbortController();
    const running = Array.from({ length: 2 }, () => begin(large, second, 'diff', stop.signal));
    for (const chunks of running) assert.equal((await chunks.next()).done, false);
    const next = begin(second, first, 'diff');
    const later = next.next();
    assert.equal(await reader.isAncestor(first, second), true);
    await database.push(database.newObjects(), repository.pack([second]));
    const shown = await Array.fromAsync(reader.history.diff(first, second, { signal, spanMs: 60_000 }));
    assert.ok(shown.length > 0);
    await running[0]?.return?.();
    assert.equal((await later).done, false);
    await next.return?.();
    stop.abort(new Error('The client left'));
    await assert.rejects(
      Array.fromAsync({ [Symbol.asyncIterator]: () => running[1] ?? assert.fail() }),
      /The client left/,
    );
    assert.ok((await textOf(first, null, 'patch')).length > 0);
  });
});
