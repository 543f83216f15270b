/** The compact map of commits, compared with a plain one. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'vitest';
import { CommitMarks } from '../../../../core/git/history/commit-marks.ts';
import { type ObjectId, objectId } from '../../../../core/kernel/ids.ts';

const id = (number: number): ObjectId => objectId(createHash('sha1').update(`${number}`).digest('hex'));

describe('Marks of commits', () => {
  test('hold what a map holds, and keep the first mark of a commit', () => {
    const marks = new CommitMarks();
    for (let number = 0; number < 20_000; number += 1) marks.add(id(number), number % 7);
    for (let number = 0; number < 20_000; number += 3) marks.add(id(number), 100);
    for (let number = 0; number < 20_000; number += 1) assert.equal(marks.get(id(number)), number % 7);
    for (let number = 20_000; number < 21_000; number += 1) assert.equal(marks.get(id(number)), null);
    assert.equal(marks.count, 20_000);
    assert.ok(marks.memoryBytes < 20_000 * 80, `${marks.memoryBytes}`);
  });

  test('tell ids apart that differ in any one digit', () => {
    const marks = new CommitMarks();
    const base = 'ab'.repeat(20);
    for (let at = 0; at < 40; at += 1) marks.add(objectId(`${base.slice(0, at)}0${base.slice(at + 1)}`), at);
    for (let at = 0; at < 40; at += 1) {
      assert.equal(marks.get(objectId(`${base.slice(0, at)}0${base.slice(at + 1)}`)), at);
    }
    assert.equal(marks.get(objectId(base)), null);
  });
});
