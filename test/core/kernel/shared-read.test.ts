/** One query for many callers, never one that was sent before the call. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { shareRead } from '../../../core/kernel/shared-read.ts';

/** A shared read whose queries end when the test calls their `answers`; each query returns its own number. */
function openReads() {
  const answers: (() => void)[] = [];
  let failNext = false;
  let running = 0;
  const read = shareRead(async () => {
    running += 1;
    assert.equal(running, 1, 'one query at a time');
    const number = answers.length;
    await new Promise<void>((resolve) => answers.push(resolve));
    running -= 1;
    if (failNext) throw new Error('lost');
    return number;
  });
  return {
    read,
    answers,
    fail: (fails: boolean) => {
      failNext = fails;
    },
  };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('A shared read', () => {
  test('answers all calls made while a query runs with the next query', async () => {
    const { read, answers } = openReads();
    const first = read();
    const [second, third] = [read(), read()];
    await settle();
    assert.equal(answers.length, 1);
    answers[0]?.();
    assert.equal(await first, 0);
    await settle();
    assert.equal(answers.length, 2);
    const fourth = read();
    answers[1]?.();
    assert.deepEqual(await Promise.all([second, third]), [1, 1]);
    await settle();
    answers[2]?.();
    assert.equal(await fourth, 2);
  });

  test('starts immediately when no query runs', async () => {
    const { read, answers } = openReads();
    for (let n = 0; n < 3; n++) {
      const answer = read();
      await settle();
      answers[n]?.();
      assert.equal(await answer, n);
    }
  });

  test('that fails does not fail the callers of the next', async () => {
    const { read, answers, fail } = openReads();
    const first = read();
    const second = read();
    await settle();
    fail(true);
    answers[0]?.();
    await assert.rejects(first, /lost/);
    fail(false);
    await settle();
    answers[1]?.();
    assert.equal(await second, 1);
  });
});
