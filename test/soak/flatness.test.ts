/** What a soak calls flat, and how it shows that. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { amountText, type Figure, isTelling, judge, renderFigures, SAMPLES_MIN, type Sample } from './flatness.ts';

const FIGURE: Figure = { name: 'handles', unit: 'count', slack: { share: 0.1, least: 5 } };

function samplesOf(values: readonly number[], name = FIGURE.name): readonly Sample[] {
  return values.map((value, n) => ({ operations: n * 10, values: new Map([[name, value]]) }));
}

const verdictOf = (values: readonly number[], figure: Figure = FIGURE) => judge(figure, samplesOf(values)).verdict;

describe('A figure of a soak', () => {
  test('is flat whatever it did while it warmed up', () => {
    assert.equal(verdictOf([0, 500, 100, 100, 100, 100]), 'flat');
    assert.equal(verdictOf([900, 900, 100, 100, 100, 100]), 'flat');
  });

  test('is flat up to its share of the middle third, and not one beyond', () => {
    assert.equal(verdictOf([0, 0, 100, 100, 110, 110]), 'flat');
    assert.equal(verdictOf([0, 0, 100, 100, 110, 112]), 'GROWS');
  });

  test('is flat up to its least slack where the share is smaller, and not one beyond', () => {
    assert.equal(verdictOf([0, 0, 10, 10, 15, 15]), 'flat');
    assert.equal(verdictOf([0, 0, 10, 10, 15, 17]), 'GROWS');
    assert.equal(verdictOf([0, 0, 0, 0, 5, 5]), 'flat');
  });

  test('is flat when it falls, and when one sample alone is high', () => {
    assert.equal(verdictOf([0, 0, 100, 100, 10, 10]), 'flat');
    assert.equal(verdictOf([0, 0, 0, 100, 100, 100, 100, 129, 100]), 'flat');
  });

  test('that grows a little with every sample is found, however slowly, in a long run', () => {
    assert.equal(verdictOf(Array.from({ length: 60 }, (_, n) => 100 + n)), 'GROWS');
  });

  test('that has a bound may grow up to it, and in no sample beyond', () => {
    const bounded: Figure = { ...FIGURE, slack: { most: 100 } };
    assert.equal(verdictOf([0, 20, 40, 60, 80, 100], bounded), 'within its bound');
    assert.equal(verdictOf([0, 0, 101, 0, 0, 0], bounded), 'GROWS');
    assert.match(renderFigures([judge(bounded, samplesOf([1, 1, 1, 1, 1, 1]))]), /\| at most 100 +\| within its bound/);
  });

  test('that grows by design is shown for each operation and never judged', () => {
    const judged = judge({ ...FIGURE, slack: null }, samplesOf([10, 20, 30, 40, 50, 260]));
    assert.equal(judged.verdict, 'grows by design');
    assert.equal(judged.perOperation, 5);
  });

  test('without a value in a sample was 0 there', () => {
    const samples = samplesOf([1, 1, 1, 1, 1, 1], 'another');
    assert.deepEqual([judge(FIGURE, samples).end, judge(FIGURE, samples).verdict], [0, 'flat']);
  });

  test('needs two samples in each third', () => {
    assert.throws(() => verdictOf(Array.from({ length: SAMPLES_MIN - 1 }, () => 1)), /say nothing/);
    assert.equal(verdictOf(Array.from({ length: SAMPLES_MIN }, () => 1)), 'flat');
  });

  test('stands in a line of the table, with what it may grow by or grows by', () => {
    const events: Figure = { name: 'events', unit: 'count', slack: null };
    const memory: Figure = { name: 'memory', unit: 'bytes', slack: { share: 0.15, least: 64 * 1024 * 1024 } };
    const bytes = 200 * 1024 * 1024;
    const text = renderFigures([
      judge(memory, samplesOf([1024, 1024, bytes, bytes, bytes, bytes], 'memory')),
      judge(events, samplesOf([0, 10, 20, 30, 40, 50], 'events')),
    ]);
    const [head = '', rule = '', first = '', second = ''] = text.split('\n');
    assert.match(head, /^\| figure +\| +start \| after warm-up \| +end \| per operation \| slack/);
    assert.match(rule, /^\| -+ \| -+: \|/);
    assert.match(first, /^\| memory +\| +1 KiB \| +200 MiB \| 200 MiB \| +\| 15 %, at least 64 MiB +\| flat +\|$/);
    assert.match(second, /^\| events +\| +0 \| +25 \| +45 \| +1 \| +\| grows by design +\|$/);
    assert.equal(new Set(text.split('\n').map((line) => line.length)).size, 1, 'the columns are aligned');
  });

  test('says nothing if it may grow and did not', () => {
    const table: Figure = { ...FIGURE, slack: null };
    assert.equal(isTelling(judge(table, samplesOf([1, 1, 1, 1, 1, 1]))), false);
    assert.equal(isTelling(judge(table, samplesOf([1, 1, 1, 1, 1, 2]))), true);
    assert.equal(isTelling(judge(FIGURE, samplesOf([1, 1, 1, 1, 1, 1]))), true, 'that it is flat is said');
  });

  test('is shown with the unit that fits', () => {
    assert.equal(amountText(1_023, 'bytes'), '1023 B');
    assert.equal(amountText(1_024, 'bytes'), '1 KiB');
    assert.equal(amountText(1.5 * 1024 * 1024, 'bytes'), '1.5 MiB');
    assert.equal(amountText(0.125, 'count'), '0.13');
    assert.equal(amountText(12.4, 'count'), '12');
  });
});
