/** What the website keeps of what it read. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createKnownAnswers } from '../../../apps/front-door/known-answers.ts';
import type { ChangedFile, Diff, DiffLine } from '../../../core/git/diff/diff.ts';
import { CommitMarks } from '../../../core/git/history/commit-marks.ts';
import { objectId, type RepositoryId } from '../../../core/kernel/ids.ts';
import {
  KNOWN_APART_MAX,
  KNOWN_COMPARISONS_COMMITS_MAX,
  KNOWN_DIFFS_BYTES_MAX,
  KNOWN_FOLDERS_ENTRIES_MAX,
  KNOWN_PATH_COMMITS_MAX,
  KNOWN_PUSHES_BYTES_MAX,
} from '../../../core/kernel/limits.ts';

const TIP = objectId('0'.repeat(39) + '1');

function marksOf(memoryBytes: number): CommitMarks {
  return Object.defineProperty(new CommitMarks(), 'memoryBytes', { value: memoryBytes });
}

function diffOf(lines: number, textLength: number): Diff {
  const line: DiffLine = {
    ...{ kind: 'added', oldNumber: null, newNumber: 1, cut: false, ended: true },
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

describe('What is known of commits', () => {
  test('is bounded in entries of folders: one more, and the oldest folder is forgotten', () => {
    const { knownFolders } = createKnownAnswers();
    const folder = (count: number) => ({
      tip: TIP,
      entries: new Map(Array.from({ length: count }, (_, n) => [String(n), { left: '', commit: null }])),
    });
    // Each folder counts as one more than its entries.
    knownFolders.set('first', folder(0));
    knownFolders.set('rest', folder(KNOWN_FOLDERS_ENTRIES_MAX - 2));
    assert.ok(knownFolders.get('first'));
    assert.ok(knownFolders.get('rest'));
    knownFolders.set('one more', folder(0));
    assert.equal(knownFolders.get('first'), undefined);
  });

  test('is bounded in commits of paths', () => {
    const { knownPathHistories } = createKnownAnswers();
    const history = (count: number) => ({ ids: Array.from({ length: count }, () => TIP), after: 'end' as const });
    knownPathHistories.set('first', history(0));
    knownPathHistories.set('rest', history(KNOWN_PATH_COMMITS_MAX - 2));
    assert.ok(knownPathHistories.get('first'));
    knownPathHistories.set('one more', history(0));
    assert.equal(knownPathHistories.get('rest'), undefined);
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

  test('is bounded in distances of branches', () => {
    const { knownApart } = createKnownAnswers();
    for (let n = 0; n < KNOWN_APART_MAX; n += 1) knownApart.set(String(n), { ahead: n, behind: 0 });
    assert.deepEqual(knownApart.get('1'), { ahead: 1, behind: 0 });
    knownApart.set('one more', { ahead: 0, behind: 0 });
    assert.equal(knownApart.get('0'), undefined);
  });
});
