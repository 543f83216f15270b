/** What the moves of a push cost to compare, whatever its commands say, and that each answer is exact. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, test } from 'vitest';
import {
  compareMoves,
  PUSH_COMPARING_MS_MAX,
  PUSH_MOVES_FAR_MAX,
  PUSH_MOVES_WALKED_MAX,
} from '../../../../adapters/git/packs/ancestry.ts';
import type { ObjectSource } from '../../../../adapters/git/packs/object-source.ts';
import type { Git, GitCommand } from '../../../../adapters/git/process/git-commands.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';
import { HISTORY_READ_CPU_SECONDS_MAX } from '../../../../core/kernel/limits.ts';
import { ObjectDatabaseError } from '../../../../core/ports/object-database.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';
import { commitBytes } from '../../../support/hostile-packs.ts';
import { testDatabase } from '../../../support/object-database.ts';
import { rawPack } from '../../../support/raw-pack.ts';

const BLOB = objectId('b'.repeat(40));
const { signal } = new AbortController();

/** The commit of this number; each has the one before as its parent. */
function commit(number: number): ObjectId {
  return objectId(number.toString(16).padStart(40, '0'));
}

/** A history of this many commits, numbered from 1, and what was asked of it. */
function history(commits: number) {
  const asked = { reads: 0, git: new Array<GitCommand>() };
  const numberOf = (id: ObjectId) => (id === BLOB ? 0 : Number.parseInt(id, 16));
  const has = (id: ObjectId) => numberOf(id) >= 1 && numberOf(id) <= commits;
  const source: ObjectSource = {
    has: async (id) => has(id),
    type: (id) => {
      if (id === BLOB) return 'blob';
      return has(id) ? 'commit' : null;
    },
    info: async () => null,
    read: async (id) => {
      asked.reads += 1;
      const number = numberOf(id);
      return has(id) ? { type: 'commit', bytes: commitBytes(number === 1 ? [] : [commit(number - 1)], 'x') } : null;
    },
  };
  const git: Pick<Git, 'run'> = {
    run: async (command) => {
      asked.git.push(command);
      const [, , before = '', after = ''] = command.args;
      const code = numberOf(objectId(before)) <= numberOf(objectId(after)) ? 0 : 1;
      return { code, signal: null, killed: 'no', stdout: '', stderr: '', outgrown: false };
    },
  };
  return { source, view: { key: 'account', variables: async () => ({}) }, git, asked };
}

describe('the moves of a push', () => {
  test('are compared by git where they are far, and from what is not there are no fast-forward', async () => {
    const db = await testDatabase();
    const folder = temporaryFolder('moves');
    try {
      const repository = testRepository(join(folder.path, 'repository'));
      const commits = Array.from({ length: 600 }, (_, index) => {
        const from = index === 0 ? '' : `from :${index}\n`;
        const who = `A <a@example.org> ${1_600_000_000 + index} +0000`;
        return `commit refs/heads/main\nmark :${index + 1}\ncommitter ${who}\ndata 2\nx\n${from}\n`;
      });
      repository.git(['fast-import', '--quiet'], { input: commits.join('') });
      const idOf = (name: string) => objectId(repository.line(['rev-parse', name]));
      const objects = await db.push(db.newObjects(), repository.pack(['--all']));
      const received = await db.receive(objects, rawPack([]));
      assert.ok(!('refused' in received));
      const [first, middle, last] = [idOf('main~599'), idOf('main~300'), idOf('main')];
      const moves = [
        { before: first, after: last },
        { before: last, after: middle },
        { before: objectId('e'.repeat(40)), after: last },
        { before: idOf('main^{tree}'), after: last },
      ];
      assert.deepEqual(await received.compareMoves(moves, signal), [true, false, false, false]);
      await received.discard();
    } finally {
      folder.remove();
      await db.close();
    }
  });

  test('are compared once where 100,000 refs move alike, 300 commits far', async () => {
    const { git, asked, ...access } = history(400);
    const moves = Array.from({ length: 100_000 }, () => ({ before: commit(50), after: commit(350) }));
    const compared = await compareMoves(git, access, moves, signal);
    assert.deepEqual(compared, Array(100_000).fill(true));
    assert.equal(asked.git.length, 1);
    assert.ok(asked.reads <= 256, `${asked.reads} reads`);
  });

  test('are walked in turns of the event loop, and no further than a bounded number of commits in all', async () => {
    const { git, asked, ...access } = history(3_000);
    const moves = Array.from({ length: 1_000 }, (_, move) => ({
      before: commit(1 + move),
      after: commit(3_000 - move),
    }));
    let turns = 0;
    let isDone = false;
    const counting = (async () => {
      for (; !isDone; turns += 1) await nextTurn();
    })();
    assert.deepEqual(await compareMoves(git, access, moves, signal), Array(1_000).fill(true));
    isDone = true;
    await counting;
    assert.equal(asked.reads, PUSH_MOVES_WALKED_MAX);
    assert.ok(turns > PUSH_MOVES_WALKED_MAX / 100, `${turns} turns`);
  });

  test(`are refused when more than ${PUSH_MOVES_FAR_MAX} different ones are far, before git compares any`, async () => {
    const { git, asked, ...access } = history(PUSH_MOVES_FAR_MAX + 1_000);
    const last = commit(PUSH_MOVES_FAR_MAX + 1_000);
    const moves = Array.from({ length: PUSH_MOVES_FAR_MAX + 1 }, (_, move) => ({
      before: commit(1 + move),
      after: last,
    }));
    const refused = await compareMoves(git, access, moves, signal);
    assert.ok('refused' in refused);
    assert.equal(refused.refused, 'pack-too-costly');
    assert.match(refused.detail, /in 10001 different ways, at most 10000 are allowed: push fewer refs in one push$/);
    assert.equal(asked.git.length, 0);
    const taken = await compareMoves(git, access, moves.slice(1), signal);
    assert.deepEqual(taken, Array(PUSH_MOVES_FAR_MAX).fill(true));
    assert.equal(asked.git.length, PUSH_MOVES_FAR_MAX);
  });

  test('are compared exactly, near and far, forwards and forced', async () => {
    const { git, asked, ...access } = history(1_000);
    const moves = [
      { before: commit(998), after: commit(1_000) },
      { before: commit(1), after: commit(1_000) },
      { before: commit(1_000), after: commit(500) },
      { before: commit(9), after: commit(7) },
    ];
    assert.deepEqual(await compareMoves(git, access, moves, signal), [true, true, false, false]);
    assert.equal(asked.git.length, 2);
    for (const { cpuMsMax, wallMsMax, signal: running } of asked.git) {
      assert.equal(cpuMsMax?.(), HISTORY_READ_CPU_SECONDS_MAX * 1_000);
      assert.ok(wallMsMax !== undefined && wallMsMax <= PUSH_COMPARING_MS_MAX);
      assert.equal(running, signal);
    }
  });

  test('from what is no commit, or not there, start no git', async () => {
    const { git, asked, ...access } = history(1_000);
    const moves = [BLOB, objectId('e'.repeat(40))].map((before) => ({ before, after: commit(1_000) }));
    assert.deepEqual(await compareMoves(git, access, moves, signal), [false, false]);
    assert.equal(asked.git.length, 0);
  });

  test('are refused when git takes too long, and given up when the client leaves', async () => {
    const { git, ...access } = history(1_000);
    const moves = [{ before: commit(1), after: commit(1_000) }];
    const slow: typeof git = {
      run: async () => ({ code: null, signal: 'SIGKILL', killed: 'timeout', stdout: '', stderr: '', outgrown: false }),
    };
    const refused = await compareMoves(slow, access, moves, signal);
    assert.ok('refused' in refused);
    assert.match(refused.detail, /took too long: push fewer refs in one push$/);
    const broken: typeof git = { run: async () => Promise.reject(new ObjectDatabaseError('layer-missing', 'gone')) };
    await assert.rejects(compareMoves(broken, access, moves, signal), /gone/);
    await assert.rejects(compareMoves(git, access, moves, AbortSignal.abort(new Error('left'))), /left/);
  });
});
