/** The table of clients: a row for each, a cell for each operation, and nothing counted that was not judged. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { countCells, type Row, renderTable } from './table.ts';

const ROWS: readonly Row[] = [
  { client: 'git 2.39.5', cells: [{ is: 'ok' }, { is: 'refused', words: 'no | way' }] },
  { client: 'gix 1', cells: [{ is: 'cannot' }, { is: 'failed', why: 'a branch is missing' }] },
  { client: 'jgit', notRun: 'needs a JDK' },
];

test('shows each client with a cell for each operation, one that was not run with the reason', () => {
  assert.equal(
    renderTable(['clone', 'wrong token'], ROWS),
    [
      '| client     | clone                | wrong token |',
      '| ---------- | -------------------- | ----------- |',
      '| git 2.39.5 | ok                   | no \\| way   |',
      '| gix 1      | cannot               | FAILED      |',
      '| jgit       | not run: needs a JDK |             |',
      '',
    ].join('\n'),
  );
});

test('counts what was judged: neither what a client cannot do nor a client that was not run', () => {
  assert.deepEqual(countCells(ROWS), { passed: 2, failed: 1 });
});

test('cuts words that are longer than a cell can be', () => {
  const row = (words: string): Row => ({ client: 'a', cells: [{ is: 'refused', words }] });
  assert.match(renderTable(['clone'], [row('x'.repeat(160))]), /\| x{160} \|/);
  assert.match(renderTable(['clone'], [row('x'.repeat(161))]), /\| x{159}… \|/);
});
