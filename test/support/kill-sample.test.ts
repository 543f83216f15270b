/** The sample of the points at which scenarios kill servers. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { killSample } from './kill-sample.ts';

const POINTS = ['stored', 'appended', 'installed', 'answered', 'swept', 'closed', 'erased'] as const;

const tried = (seed: string): readonly string[] => POINTS.filter((point) => !killSample(POINTS, seed)(point).skip);

test('without a seed every point is tried', () => {
  assert.deepEqual(tried(''), POINTS);
});

test('a seed chooses a third, the same each time, and other seeds choose others', () => {
  assert.equal(tried('one').length, 3);
  assert.deepEqual(tried('one'), tried('one'));
  const seeds = Array.from({ length: 20 }, (_, n) => `seed ${n}`);
  assert.deepEqual(new Set(seeds.flatMap(tried)), new Set(POINTS));
});

test('a point that is left out says so', () => {
  const left = POINTS.map(killSample(POINTS, 'one')).filter(({ skip }) => skip);
  assert.deepEqual(
    left.map(({ meta }) => meta.skippedFor),
    Array<string>(4).fill('not in the sample of STRATA_KILL_SAMPLE=one'),
  );
});
