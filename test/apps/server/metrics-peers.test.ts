/** Who may read the metrics: a stranger who learns them knows how busy the service is, and what it fails at. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { IncomingMessage as Message } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'vitest';
import type { ForwardedHeader } from '../../../apps/server/forwarded-hops.ts';
import { createMetricsPeers } from '../../../apps/server/metrics-peers.ts';

function requestFrom(peer: string, headers: Readonly<Record<string, string>> = {}): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  const request = new Message(socket);
  Object.assign(request.headers, headers);
  return request;
}

const peers = (
  metricsPeers: readonly string[] = [],
  trustedProxies: readonly string[] = [],
  forwardedHeader: ForwardedHeader = 'x-forwarded-for',
) => {
  const mayScrape = createMetricsPeers({ metricsPeers, trustedProxies, forwardedHeader });
  return (peer: string, headers?: Readonly<Record<string, string>>) => mayScrape(requestFrom(peer, headers));
};

describe('The metrics', () => {
  test('are for loopback, and for those whom the setting names', () => {
    const may = peers(['10.1.0.0/16', '2001:db8::7']);
    for (const peer of ['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1', '10.1.255.255', '2001:db8::7']) {
      assert.ok(may(peer), peer);
    }
    for (const peer of ['10.2.0.0', '128.0.0.1', '2001:db8::8', '::ffff:10.2.0.1', '']) assert.ok(!may(peer), peer);
  });

  test('are not for a stranger behind a proxy that runs beside the server', () => {
    const may = peers([], ['127.0.0.1']);
    assert.ok(!may('127.0.0.1', { 'x-forwarded-for': '203.0.113.9' }));
    assert.ok(!may('127.0.0.1', { 'x-forwarded-for': '127.0.0.1, 203.0.113.9' }), 'the claim of the client counts');
    assert.ok(may('127.0.0.1', { 'x-forwarded-for': '203.0.113.9, 127.0.0.2' }), 'the client of the proxy counts');
    assert.ok(may('127.0.0.1'), 'nobody forwarded it');
  });

  test('are for a client whom the proxy names by the header of the setting, with a port or without', () => {
    assert.ok(peers([], ['10.0.0.8'])('10.0.0.8', { 'x-forwarded-for': '127.0.0.1:51234' }));
    const may = peers(['2001:db8::7'], ['10.0.0.8'], 'forwarded');
    assert.ok(may('10.0.0.8', { forwarded: 'for="[2001:db8::7]:51234";proto=https' }));
    assert.ok(!may('10.0.0.8', { forwarded: 'for="[2001:db8::8]:51234"' }));
    assert.ok(!may('10.0.0.8', { 'x-forwarded-for': '127.0.0.1' }), 'of the other header nobody knows who wrote it');
  });

  test('count the first of a chain of trusted proxies as its client', () => {
    const may = peers([], ['127.0.0.1', '10.0.0.0/8']);
    assert.ok(!may('127.0.0.1', { 'x-forwarded-for': '10.0.0.9, 10.0.0.8' }));
    assert.ok(peers(['10.0.0.9'], ['127.0.0.1', '10.0.0.0/8'])('127.0.0.1', { 'x-forwarded-for': '10.0.0.9' }));
  });

  test('are not for a request that came through a proxy which no setting names', () => {
    for (const name of ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']) {
      assert.ok(!peers()('127.0.0.1', { [name]: '127.0.0.1' }), name);
    }
  });

  test('are not for a request whose client a trusted proxy does not tell', () => {
    const may = peers([], ['127.0.0.1']);
    assert.ok(!may('127.0.0.1', { 'x-real-ip': '127.0.0.1' }));
    for (const text of ['', 'localhost', '127.0.0.1,', 'unknown, 127.0.0.1']) {
      assert.ok(!may('127.0.0.1', { 'x-forwarded-for': text }), text);
    }
    assert.ok(!may('127.0.0.1', { forwarded: 'for=127.0.0.1' }), 'of the other header nobody knows who wrote it');
  });
});
