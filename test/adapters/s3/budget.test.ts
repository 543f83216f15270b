/** What requests to one bucket may hold together. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createBudget } from '../../../adapters/s3/budget.ts';
import { S3Failure } from '../../../adapters/s3/failures.ts';

describe('The budget of a bucket', () => {
  test('is granted up to its bound immediately, and beyond it when something is given back', async () => {
    const budget = createBudget(10, 5_000);
    const [first] = await Promise.all([budget.take(6), budget.take(4)]);
    let isGranted = false;
    const beyond = budget.take(1).then(() => (isGranted = true));
    await sleep(20);
    assert.equal(isGranted, false);
    first();
    await beyond;
  });

  test('counts what is given back once, however often it is given back', async () => {
    const budget = createBudget(2, 30);
    const release = await budget.take(1);
    await budget.take(1);
    release();
    release();
    await budget.take(1);
    await assert.rejects(budget.take(1), S3Failure);
  });

  test('is granted in the order of the requests, so that small ones do not starve a large one', async () => {
    const budget = createBudget(10, 5_000);
    const release = await budget.take(5);
    const order: string[] = [];
    const large = budget.take(10).then((done) => {
      order.push('large');
      done();
    });
    const small = budget.take(1).then(() => void order.push('small'));
    release();
    await Promise.all([large, small]);
    assert.deepEqual(order, ['large', 'small']);
  });

  test('is refused to who waits too long, and goes to the next', async () => {
    const budget = createBudget(10, 30);
    await budget.take(5);
    const tooMuch = budget.take(6);
    const fits = budget.take(5);
    await assert.rejects(tooMuch, (error) => error instanceof S3Failure && error.code === 'throttled');
    await fits;
  });
});
