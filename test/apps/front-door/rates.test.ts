/** How often something may be done, and who counts as one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countedAs, createRate } from '../../../apps/front-door/rates.ts';
import { createTestClock } from '../../support/test-clock.ts';

test('as many as are allowed within any span, each key by itself, and refusals do not count', () => {
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

test('one who has a whole IPv6 network and asks from a new address each time counts as one', () => {
  const network = '2001:db8:0:7::/64';
  for (const address of [
    '2001:db8:0:7::1',
    '2001:db8:0:7:ffff:1:2:3',
    '2001:DB8::7:0:0:0:1',
    '2001:db8:0:0007::%eth0',
  ]) {
    assert.equal(countedAs(address), network, address);
  }
  assert.equal(countedAs('2001:db8:0:8::1'), '2001:db8:0:8::/64');
  assert.equal(countedAs('::1'), '0:0:0:0::/64');
  assert.equal(countedAs('fe80::1'), 'fe80:0:0:0::/64');
  assert.equal(countedAs('203.0.113.7'), '203.0.113.7');
  assert.equal(countedAs(''), '');
});
