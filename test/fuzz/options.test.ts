import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readOptions, UsageError } from './options.ts';

const read = (...args: string[]) => readOptions(args, () => 42);

describe('The options of a fuzz run', () => {
  test('are a minute of a new seed when nothing is said', () => {
    assert.deepEqual(read(), { seconds: 60, inputs: null, seed: 42, replay: null });
  });

  test('bound the run by time, by inputs, or by both', () => {
    assert.deepEqual(read('--inputs', '1000'), { seconds: null, inputs: 1_000, seed: 42, replay: null });
    assert.deepEqual(read('--inputs=5', '--seconds=7', '--seed=9'), { seconds: 7, inputs: 5, seed: 9, replay: null });
  });

  test('name one input to send again', () => {
    assert.deepEqual(read('--replay', '7:1234'), { seconds: 60, inputs: null, seed: 7, replay: 1_234 });
  });

  for (const wrong of [
    ['--seconds', '-1'],
    ['--seconds', '86401'],
    ['--seed', 'x'],
    ['--seed', '4294967296'],
    ['--replay', '7'],
    ['--replay', '7:1:2'],
    ['--replay', '7:1', '--seconds', '5'],
    ['--weight', '1'],
    ['more'],
  ]) {
    test(`refuse ${wrong.join(' ')}`, () => {
      assert.throws(() => read(...wrong), UsageError);
    });
  }
});
