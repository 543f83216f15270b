/** The addresses that rate limits count as one. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { networkOf, wideNetworkOf } from '../../../core/kernel/network.ts';

test('all addresses of an IPv6 /64 network count as one, however they are written', () => {
  for (const address of [
    '2001:db8:7::1',
    '2001:db8:7::ffff:2:3:4',
    '2001:DB8:7:0:0:0:0:1',
    '2001:db8:0007::%eth0',
    '2001:0db8:7:0::',
  ]) {
    assert.equal(networkOf(address), '2001:db8:7:0::/64', address);
    assert.equal(wideNetworkOf(address), '2001:db8:7::/48', address);
  }
  assert.equal(networkOf('2001:db8:7:1::1'), '2001:db8:7:1::/64');
  assert.equal(networkOf('::1'), '0:0:0:0::/64');
});

test('all networks of a /48 are one wide network, and the next /48 is another', () => {
  for (const address of ['2001:db8:7::1', '2001:db8:7:ffff:1:2:3:4', '2001:0db8:7:1::']) {
    assert.equal(wideNetworkOf(address), '2001:db8:7::/48', address);
  }
  assert.equal(wideNetworkOf('2001:db8:8::1'), '2001:db8:8::/48');
  assert.equal(wideNetworkOf('fe80::1'), 'fe80:0:0::/48');
});

test('an IPv4 address is a network by itself, in a wide network of 256', () => {
  assert.equal(networkOf('203.0.113.7'), '203.0.113.7');
  assert.equal(wideNetworkOf('203.0.113.7'), '203.0.113.0/24');
  assert.deepEqual([networkOf(''), wideNetworkOf('')], ['', '']);
});
