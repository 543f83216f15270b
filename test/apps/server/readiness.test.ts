/** What a node says of itself: ready, and what it does less well. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createDuty, readiness } from '../../../apps/server/readiness.ts';

describe('A duty', () => {
  test('is degraded from its failure until it works again', () => {
    const duty = createDuty(() => 0);
    assert.equal(duty.isDegraded(), false);
    duty.fails();
    assert.equal(duty.isDegraded(), true);
    duty.works();
    assert.equal(duty.isDegraded(), false);
  });

  test('that failed long ago, and is not tried here any more, is another one to do', () => {
    let now = 1_000;
    const duty = createDuty(() => now);
    duty.fails();
    now += 19_999;
    assert.equal(duty.isDegraded(), true);
    now += 1;
    assert.equal(duty.isDegraded(), false);
  });
});

describe('Readiness', () => {
  const degraded = { isDegraded: () => true };
  const fine = { isDegraded: () => false };

  test('rests on what answers need; a duty that is not done is named and makes nothing unready', async () => {
    assert.deepEqual(await readiness({ log: Promise.resolve(7) }, { workflows: degraded, webhooks: fine }), {
      ready: true,
      parts: { log: 'ok', workflows: 'degraded', webhooks: 'ok' },
    });
    assert.deepEqual(await readiness({ log: Promise.reject(new Error('gone')) }, { workflows: fine }), {
      ready: false,
      parts: { log: 'unavailable', workflows: 'ok' },
    });
  });

  test('counts what does not answer in time as down', async (context) => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    const asked = readiness({ log: new Promise(() => undefined), vault: Promise.resolve() }, {});
    await nextTurn();
    context.mock.timers.tick(2_000);
    assert.deepEqual(await asked, { ready: false, parts: { log: 'no answer', vault: 'ok' } });
  });
});
