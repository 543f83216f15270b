/** The readiness of a node, and its degraded parts. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, test, vi } from 'vitest';
import { createPartHealth, readiness } from '../../../apps/server/readiness.ts';

describe('The health of a part', () => {
  test('is degraded from its failure until it works again', () => {
    const health = createPartHealth(() => 0);
    assert.equal(health.isDegraded(), false);
    health.fails();
    assert.equal(health.isDegraded(), true);
    health.works();
    assert.equal(health.isDegraded(), false);
  });

  test('is not degraded long after the last failure, since another node may have taken over', () => {
    let now = 1_000;
    const health = createPartHealth(() => now);
    health.fails();
    now += 19_999;
    assert.equal(health.isDegraded(), true);
    now += 1;
    assert.equal(health.isDegraded(), false);
  });
});

describe('Readiness', () => {
  const degraded = { isDegraded: () => true };
  const fine = { isDegraded: () => false };

  test('depends only on the parts that answers need, and reports any other failed part as degraded', async () => {
    assert.deepEqual(await readiness({ log: Promise.resolve(7) }, { workflows: degraded, webhooks: fine }), {
      ready: true,
      parts: { log: 'ok', workflows: 'degraded', webhooks: 'ok' },
    });
    assert.deepEqual(await readiness({ log: Promise.reject(new Error('gone')) }, { workflows: fine }), {
      ready: false,
      parts: { log: 'unavailable', workflows: 'ok' },
    });
  });

  test('counts a check that does not answer in time as down', async (context) => {
    context.onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const checked = readiness({ log: new Promise(() => undefined), vault: Promise.resolve() }, {});
    await nextTurn();
    vi.advanceTimersByTime(2_000);
    assert.deepEqual(await checked, { ready: false, parts: { log: 'no answer', vault: 'ok' } });
  });
});
