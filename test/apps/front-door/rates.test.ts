/** Rate limits, and the addresses that count as one. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { rateKeyOf, createRate } from '../../../apps/front-door/rates.ts';
import { createTestClock } from '../../support/test-clock.ts';

test('a rate admits the allowed number within any span, for each key separately, and does not count refusals', () => {
  const clock = createTestClock();
  const rate = createRate({ timesMax: 2, spanMs: 10_000, clock });
  assert.equal(rate.take('a'), null);
  clock.advance(4_000);
  assert.equal(rate.take('a'), null);
  assert.equal(rate.take('b'), null);
  assert.equal(rate.take('a'), 6);
  clock.advance(5_999);
  assert.equal(rate.take('a'), 1);
  clock.advance(1);
  assert.equal(rate.take('a'), null);
  assert.equal(rate.take('a'), 4);
});

test('all addresses of an IPv6 /64 network count as one', () => {
  const network = '2001:db8:0:7::/64';
  for (const address of [
    '2001:db8:0:7::1',
    '2001:db8:0:7:ffff:1:2:3',
    '2001:DB8::7:0:0:0:1',
    '2001:db8:0:0007::%eth0',
  ]) {
    assert.equal(rateKeyOf(address), network, address);
  }
  assert.equal(rateKeyOf('2001:db8:0:8::1'), '2001:db8:0:8::/64');
  assert.equal(rateKeyOf('::1'), '0:0:0:0::/64');
  assert.equal(rateKeyOf('fe80::1'), 'fe80:0:0:0::/64');
  assert.equal(rateKeyOf('203.0.113.7'), '203.0.113.7');
  assert.equal(rateKeyOf(''), '');
});
