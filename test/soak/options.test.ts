/** The command line of the soak. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readOptions, UsageError } from './options.ts';

const read = (...args: string[]) => readOptions(args, () => 7);

describe('The command line of the soak', () => {
  test('has ten minutes and a random seed as its defaults', () => {
    assert.deepEqual(read(), { minutes: 10, seed: 7 });
    assert.deepEqual(read('--minutes', '1', '--seed', '3'), { minutes: 1, seed: 3 });
  });

  test('takes nothing that is beyond its bounds or unknown', () => {
    for (const minutes of ['0.9', '1441', 'x', '', 'NaN']) {
      assert.throws(() => read('--minutes', minutes), UsageError, minutes);
    }
    assert.equal(read('--minutes', '1440').minutes, 1_440);
    for (const args of [['--hours', '1'], ['1'], ['--minutes'], ['--seed', '-1'], ['--seed', String(2 ** 32)]]) {
      assert.throws(() => read(...args), UsageError, args.join(' '));
    }
  });
});
