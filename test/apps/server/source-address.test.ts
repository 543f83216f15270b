/**
 * Whom a request counts as, behind proxies as they really write their clients' addresses:
 * - Azure Application Gateway: "a comma-separated list of IP:Port" (Rewrite HTTP headers with Azure Application
 *   Gateway, azure.microsoft.com/blog/rewrite-http-headers-with-azure-application-gateway);
 * - nginx, HAProxy, Caddy and Amazon's load balancer by default: the address alone, behind what was there before;
 * - `Forwarded`: the examples of RFC 7239, sections 4, 6.3 and 7.1.
 */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'vitest';
import type { ForwardedHeader } from '../../../apps/server/forwarded-hops.ts';
import { createClientAddress } from '../../../apps/server/source-address.ts';

const PROXY = '10.0.0.1';
const TRUSTED = [PROXY, '10.0.0.2', '2001:db8:1::/48'];

interface Told {
  readonly forwardedHeader?: ForwardedHeader;
  readonly peer?: string;
  readonly onUnreadable?: () => void;
}

function clientOf(headers: Readonly<Record<string, string>>, told: Told = {}): string {
  const { forwardedHeader = 'x-forwarded-for', peer = PROXY, onUnreadable } = told;
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: peer });
  const request = new IncomingMessage(socket);
  Object.assign(request.headers, headers);
  return createClientAddress({ trustedProxies: TRUSTED, forwardedHeader }, onUnreadable)(request);
}

describe('A client behind a proxy that writes X-Forwarded-For', () => {
  const client = (text: string, told?: Told) => clientOf({ 'x-forwarded-for': text }, told);

  test('is the last address that no trusted proxy has, with or without a port', () => {
    for (const [text, address] of [
      ['203.0.113.9', '203.0.113.9'],
      ['203.0.113.9:51234', '203.0.113.9'],
      ['198.51.100.4, 203.0.113.9:51234', '203.0.113.9'],
      ['203.0.113.9:51234,10.0.0.2:443', '203.0.113.9'],
      ['2001:db8::7', '2001:db8::7'],
      ['[2001:db8::7]', '2001:db8::7'],
      ['[2001:db8::7]:51234', '2001:db8::7'],
      ['[2001:db8::7]:51234, [2001:db8:1::9]:80', '2001:db8::7'],
      ['[::ffff:203.0.113.9]:51234', '203.0.113.9'],
    ] as const) {
      assert.equal(client(text), address, text);
    }
  });

  test('is not somebody whom the client names', () => {
    for (const text of ['10.0.0.2, 203.0.113.9', '", 203.0.113.9', '192.0.2.1:", [, 203.0.113.9:1']) {
      assert.equal(client(text), '203.0.113.9', text);
    }
    assert.equal(client('198.51.100.4', { peer: '203.0.113.9' }), '203.0.113.9', 'no proxy sent it');
    const forwarded = { 'x-forwarded-for': '203.0.113.9:1', forwarded: 'for=198.51.100.4' };
    assert.equal(clientOf(forwarded), '203.0.113.9', 'the proxy passed on what the client wrote');
  });

  test('is the proxy where it hides its client, or writes what nobody can read', () => {
    for (const text of ['unknown', 'Unknown', '_hidden', '198.51.100.4, unknown', '', '203.0.113.9,']) {
      assert.equal(client(text), PROXY, text);
    }
    for (const text of ['[203.0.113.9]:1', '203.0.113.9:123456', '[2001:db8::7', '203.0.113.9/24', 'a.example:80']) {
      assert.equal(client(text), PROXY, text);
    }
    assert.equal(clientOf({}), PROXY);
  });
});

describe('A client behind a proxy that writes Forwarded', () => {
  const client = (text: string) => clientOf({ forwarded: text }, { forwardedHeader: 'forwarded' });

  test('is the last address that no trusted proxy has', () => {
    for (const [text, address] of [
      ['for=192.0.2.43', '192.0.2.43'],
      ['For="[2001:db8:cafe::17]:4711"', '2001:db8:cafe::17'],
      ['for=192.0.2.60;proto=http;by=203.0.113.43', '192.0.2.60'],
      ['by=203.0.113.43; FOR="192.0.2.60:80" ', '192.0.2.60'],
      ['proto=https ; for="192.0.2.60:_port"', '192.0.2.60'],
      ['for=192.0.2.43, for=198.51.100.17', '198.51.100.17'],
      ['for=192.0.2.43,for=10.0.0.2;by=10.0.0.1', '192.0.2.43'],
      ['for="192.0.2.43";host="a,b;for=198.51.100.17"', '192.0.2.43'],
      ['for="192\\.0.2.43"', '192.0.2.43'],
      // What the proxy quotes is the client's: a quote in it, or a backslash at its end, ends nothing.
      ['for="192.0.2.43";host="a,for=198.51.100.17;\\""', '192.0.2.43'],
      ['for="192.0.2.43";host="a,for=198.51.100.17;b\\\\"', '192.0.2.43'],
      // Some send it so, though the standard wants quotes.
      ['for=[2001:db8::7]:4711', '2001:db8::7'],
    ] as const) {
      assert.equal(client(text), address, text);
    }
  });

  test('is not somebody whom the client names, with quotes that do not end either', () => {
    const behind = (written: string) => client(`${written}, for="203.0.113.9:4711";proto=https`);
    for (const written of ['for=10.0.0.2', 'for="', 'for="\\', '"', 'x="\\";for=192.0.2.1', 'for=192.0.2.1;host="a']) {
      assert.equal(behind(written), '203.0.113.9', written);
    }
    const both = { 'x-forwarded-for': '198.51.100.4', forwarded: 'for=203.0.113.9' };
    assert.equal(clientOf(both, { forwardedHeader: 'forwarded' }), '203.0.113.9');
    assert.equal(clientOf({ 'x-forwarded-for': '198.51.100.4' }, { forwardedHeader: 'forwarded' }), PROXY);
  });

  test('is the proxy where it hides its client, or writes what nobody can read', () => {
    for (const text of ['for=unknown', 'for="_gazonk"', 'for=_hidden, for=_SEVKISEK', 'for=192.0.2.43, for=unknown']) {
      assert.equal(client(text), PROXY, text);
    }
    for (const text of ['proto=https', 'for=', 'for="192.0.2.43', 'for=192.0.2.43;for=192.0.2.44', '192.0.2.43']) {
      assert.equal(client(text), PROXY, text);
    }
  });
});

describe('A proxy whose header cannot be read', () => {
  test('is told of once, and one that hides its clients or has been given nonsense by them is not', () => {
    let told = 0;
    const trustedProxies = [PROXY];
    const address = createClientAddress({ trustedProxies, forwardedHeader: 'x-forwarded-for' }, () => (told += 1));
    const send = (text: string) => {
      const socket = new Socket();
      Object.defineProperty(socket, 'remoteAddress', { value: PROXY });
      const request = new IncomingMessage(socket);
      request.headers['x-forwarded-for'] = text;
      address(request);
      return told;
    };
    assert.equal(send('unknown'), 0);
    assert.equal(send('not an address, 203.0.113.9'), 0);
    assert.equal(send('not an address'), 1);
    assert.equal(send('203.0.113.9/32'), 1);
  });
});
