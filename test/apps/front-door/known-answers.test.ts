/** What the website keeps of what it read. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  createKnownAnswers,
  KNOWN_APART_MAX,
  KNOWN_BLAMES_BYTES_MAX,
  KNOWN_COMMIT_DATES_MAX,
  KNOWN_COMPARISONS_COMMITS_MAX,
  KNOWN_DIFFS_BYTES_MAX,
  KNOWN_FILES_BYTES_MAX,
  KNOWN_FOLDERS_BYTES_MAX,
  KNOWN_PATHS_BYTES_MAX,
  KNOWN_PUSHES_BYTES_MAX,
  KNOWN_SEARCHES_BYTES_MAX,
} from '../../../apps/front-door/known-answers.ts';
import type { Blame } from '../../../core/git/blame.ts';
import type { ChangedFile, Diff, DiffLine } from '../../../core/git/diff/diff.ts';
import { FILE_LIST_BYTES_MAX, FILE_LIST_PATHS_MAX } from '../../../core/git/file-list.ts';
import { CommitMarks } from '../../../core/git/history/commit-marks.ts';
import { type ObjectId, objectId, type RepositoryId } from '../../../core/kernel/ids.ts';

const TIP = objectId('0'.repeat(39) + '1');

function marksOf(memoryBytes: number): CommitMarks {
  return Object.defineProperty(new CommitMarks(), 'memoryBytes', { value: memoryBytes });
}

function diffOf(lines: number, textLength: number): Diff {
  const line: DiffLine = {
    ...{ kind: 'added', oldNumber: null, newNumber: 1, guessed: false, cut: false, ended: true },
    text: 'x'.repeat(textLength),
  };
  const hunk = { oldStart: 0, oldLines: 0, newStart: 1, newLines: lines, heading: '' };
  const file: ChangedFile = {
    ...{ status: 'added', path: Buffer.from('file'), previousPath: null, before: null, after: null },
    ...{ additions: lines, deletions: 0, binary: false, cut: false },
    hunks: [{ ...hunk, lines: Array.from({ length: lines }, () => line) }],
  };
  return { files: [file], filesTotal: 1, truncated: [] };
}

function blameOf(ranges: number, pathLength: number): Blame {
  const origins = Array.from({ length: ranges }, () => {
    return { commit: TIP, path: new Uint8Array(pathLength), previous: null };
  });
  const found = origins.map((origin, index) => ({ start: index + 1, count: 1, origin }));
  return { ranges: found, origins, pathsBytes: ranges * pathLength, complete: true };
}

describe('What is known of commits', () => {
  test('is bounded in memory for entries of folders, whatever their names are: the oldest folder is forgotten', () => {
    const entriesOf = (count: number, nameLength: number) =>
      new Map(
        Array.from({ length: count }, (_, n) => [String(n).padEnd(nameLength), { left: '', commit: null }] as const),
      );
    for (const [count, nameLength] of [
      [1_000, 20],
      [100, 20_000],
      [20_000, 20],
    ] as const) {
      const { knownFolders } = createKnownAnswers();
      const entries = entriesOf(count, nameLength);
      const keys = Array.from({ length: 1_000 }, (_, n) => String(n));
      for (const key of keys) knownFolders.set(key, { tip: TIP, entries });
      const kept = keys.filter((key) => knownFolders.get(key) !== undefined);
      const bytes = kept.length * count * (2 * nameLength + 100);
      const said = `${kept.length} folders of ${count} names of ${nameLength}`;
      assert.ok(kept.length > 0 && kept.length < 1_000 && bytes <= KNOWN_FOLDERS_BYTES_MAX, said);
      assert.equal(kept.at(-1), '999');
    }
    const { knownFolders } = createKnownAnswers();
    knownFolders.set('huge', { tip: TIP, entries: entriesOf(1, KNOWN_FOLDERS_BYTES_MAX / 2) });
    assert.equal(knownFolders.get('huge'), undefined);
    knownFolders.set('/'.repeat(KNOWN_FOLDERS_BYTES_MAX / 2), { tip: TIP, entries: entriesOf(1, 1) });
    assert.equal(knownFolders.get('/'.repeat(KNOWN_FOLDERS_BYTES_MAX / 2)), undefined);
  });

  test('is bounded in memory for commits of paths, and for the paths', () => {
    const history = (count: number) => ({ ids: Array.from({ length: count }, () => TIP), after: 'end' as const });
    for (const [count, pathLength] of [
      [1_000, 10],
      [0, 10_000],
    ] as const) {
      const { knownPathHistories } = createKnownAnswers();
      const keys = Array.from({ length: 2_000 }, (_, n) => String(n).padEnd(pathLength));
      for (const key of keys) knownPathHistories.set(key, history(count));
      const kept = keys.filter((key) => knownPathHistories.get(key) !== undefined).length;
      const said = `${kept} paths of ${pathLength} with ${count} commits`;
      assert.ok(kept > 0 && kept < 2_000 && kept * (count * 50 + 2 * pathLength) <= KNOWN_PATHS_BYTES_MAX, said);
    }
  });

  test('is bounded in memory for lists of files, and for what searches found, with the texts of each', () => {
    const { knownFiles, knownSearches } = createKnownAnswers();
    const listOf = (memoryBytes: number) => ({ list: { count: 0, files: 0, memoryBytes, parts: [] } });
    for (let number = 0; number < 5; number += 1) knownFiles.set(String(number), listOf(KNOWN_FILES_BYTES_MAX / 4));
    const left = [0, 1, 2, 3, 4].filter((number) => knownFiles.get(String(number)) !== undefined);
    assert.deepEqual(left, [2, 3, 4]);
    // Each byte of a path is kept as it is, and may take two in the text that is searched.
    knownFiles.set('longest', listOf(3 * FILE_LIST_BYTES_MAX + 10 * FILE_LIST_PATHS_MAX));
    assert.notEqual(knownFiles.get('longest'), undefined);
    knownFiles.set('huge', listOf(KNOWN_FILES_BYTES_MAX));
    assert.equal(knownFiles.get('huge'), undefined);
    knownFiles.set('too many', { list: null });
    assert.deepEqual(knownFiles.get('too many'), { list: null });
    const match = (text: string) => ({ path: new Uint8Array(8), line: 1, text, before: [text], after: [] });
    const found = (count: number, length: number) => {
      const matches = Array.from({ length: count }, () => match('x'.repeat(length)));
      return { matches, isComplete: true, filesSearched: 1 };
    };
    knownSearches.set('fits', found(10, 10));
    assert.ok(knownSearches.get('fits'));
    knownSearches.set('long', found(1, KNOWN_SEARCHES_BYTES_MAX / 4));
    assert.equal(knownSearches.get('long'), undefined);
    knownSearches.set('k'.repeat(KNOWN_SEARCHES_BYTES_MAX / 2), found(1, 1));
    assert.equal(knownSearches.get('k'.repeat(KNOWN_SEARCHES_BYTES_MAX / 2)), undefined);
  });

  test('is bounded in commits between two others', () => {
    const { knownComparisons } = createKnownAnswers();
    const between = (count: number) => ({ mergeBase: TIP, ids: Array.from({ length: count }, () => TIP) });
    knownComparisons.set('first', between(0));
    knownComparisons.set('rest', between(KNOWN_COMPARISONS_COMMITS_MAX - 2));
    assert.ok(knownComparisons.get('first'));
    knownComparisons.set('one more', between(0));
    assert.equal(knownComparisons.get('rest'), undefined);
  });

  test('is bounded in memory for diffs: lines count with their texts, and one beyond the bound is not kept', () => {
    const { knownDiffs } = createKnownAnswers();
    const kept = KNOWN_DIFFS_BYTES_MAX / 4;
    for (let number = 0; number < 5; number += 1) knownDiffs.set(String(number), diffOf(1, kept / 2));
    const left = [0, 1, 2, 3, 4].filter((number) => knownDiffs.get(String(number)) !== undefined);
    assert.deepEqual(left, [2, 3, 4], 'what surrounds the texts counts too');
    knownDiffs.set('huge', diffOf(1, KNOWN_DIFFS_BYTES_MAX));
    assert.equal(knownDiffs.get('huge'), undefined);
    knownDiffs.set('many lines', diffOf(KNOWN_DIFFS_BYTES_MAX / 100, 1));
    assert.equal(knownDiffs.get('many lines'), undefined);
  });

  test('is bounded in memory for who brought lines: ranges, commits and paths count, and so does what names the file', () => {
    for (const [ranges, pathLength, keyLength] of [
      [20_000, 10, 10],
      [10, 1_000_000, 10],
      [0, 0, 2_000_000],
    ] as const) {
      const { knownBlames } = createKnownAnswers();
      const keys = Array.from({ length: 40 }, (_, n) => String(n).padEnd(keyLength));
      const blame = blameOf(ranges, pathLength);
      for (const key of keys) knownBlames.set(key, blame);
      const kept = keys.filter((key) => knownBlames.get(key) !== undefined).length;
      const bytes = kept * (ranges * (pathLength + 100) + 2 * keyLength);
      assert.ok(kept > 0 && kept < 40 && bytes <= KNOWN_BLAMES_BYTES_MAX, `${kept} of ${ranges} ranges`);
    }
    const { knownBlames } = createKnownAnswers();
    knownBlames.set('huge', blameOf(1, KNOWN_BLAMES_BYTES_MAX));
    assert.equal(knownBlames.get('huge'), undefined);
  });

  test('is bounded in memory for pushes', () => {
    const { knownPushes } = createKnownAnswers();
    const pushed = (memoryBytes: number) => ({
      marks: marksOf(memoryBytes),
      next: 0,
      boundary: [],
      incomplete: false,
    });
    const [first, rest, last] = ['1', '2', '3'] as unknown as [RepositoryId, RepositoryId, RepositoryId];
    knownPushes.set(first, pushed(0));
    knownPushes.set(rest, pushed(KNOWN_PUSHES_BYTES_MAX - 64 * 1_024));
    assert.ok(knownPushes.get(rest));
    assert.ok(knownPushes.get(first));
    knownPushes.set(last, pushed(64 * 1_024));
    assert.equal(knownPushes.get(rest), undefined);
  });

  test('is bounded in dates of commits', () => {
    const { knownCommitSeconds } = createKnownAnswers();
    const id = (n: number) => String(n).padStart(40, '0') as ObjectId;
    for (let n = 0; n < KNOWN_COMMIT_DATES_MAX; n += 1) knownCommitSeconds.set(id(n), n);
    assert.equal(knownCommitSeconds.get(id(1)), 1);
    knownCommitSeconds.set(id(KNOWN_COMMIT_DATES_MAX), 0);
    assert.equal(knownCommitSeconds.get(id(0)), undefined);
  });

  test('is bounded in distances of branches', () => {
    const { knownAheadBehind } = createKnownAnswers();
    for (let n = 0; n < KNOWN_APART_MAX; n += 1) knownAheadBehind.set(String(n), { ahead: n, behind: 0 });
    assert.deepEqual(knownAheadBehind.get('1'), { ahead: 1, behind: 0 });
    knownAheadBehind.set('one more', { ahead: 0, behind: 0 });
    assert.equal(knownAheadBehind.get('0'), undefined);
  });
});
