/** The addresses that rate limits count as one. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { networkOf } from '../../../core/kernel/network.ts';

test('all addresses of an IPv6 /48 network count as one, however they are written', () => {
  const network = '2001:db8:7::/48';
  for (const address of [
    '2001:db8:7::1',
    '2001:db8:7:ffff:1:2:3:4',
    '2001:DB8:7:0:0:0:0:1',
    '2001:db8:0007::%eth0',
    '2001:0db8:7:1::',
  ]) {
    assert.equal(networkOf(address), network, address);
  }
  assert.equal(networkOf('2001:db8:8::1'), '2001:db8:8::/48');
  assert.equal(networkOf('::1'), '0:0:0::/48');
  assert.equal(networkOf('fe80::1'), 'fe80:0:0::/48');
});

test('an IPv4 address counts by itself', () => {
  assert.equal(networkOf('203.0.113.7'), '203.0.113.7');
  assert.equal(networkOf(''), '');
});
