/** The variables of proxies, as curl and Go read them, and what no message about them quotes. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createClient } from '../../../apps/cli/client/client.ts';
import { ProxyError, proxyFor, proxyHeaders } from '../../../apps/cli/client/proxy.ts';

// curl's manual (NO_PROXY, since 7.86.0) and Go's httpproxy take ranges of addresses.
test('no_proxy names ranges of addresses', () => {
  const through = (host: string, list: string): boolean =>
    proxyFor(new URL(`https://${host}/`), { https_proxy: 'proxy:3128', no_proxy: list }) !== null;
  for (const [host, list] of [
    ['10.1.2.3', '10.0.0.0/8'],
    ['10.1.2.3', 'example.org, 192.168.0.0/16,10.1.2.3/32'],
    ['10.1.2.3', '0.0.0.0/0'],
    ['[fd12::1]', 'fd00::/8'],
    ['[fd12::1]', '[fd00::]/8'],
  ] as const) {
    assert.equal(through(host, list), false, `${host} ${list}`);
  }
  for (const [host, list] of [
    ['11.1.2.3', '10.0.0.0/8'],
    ['[fe80::1]', 'fd00::/8'],
    ['10.1.2.3', '10.0.0.0/33'],
    ['10.1.2.3', '10.0.0.0/'],
    ['10.1.2.3', '/8'],
    ['ten.example.org', '10.0.0.0/8'],
  ] as const) {
    assert.equal(through(host, list), true, `${host} ${list}`);
  }
});

test('a proxy that cannot be used is an error, which quotes no password, and no direct connection', async () => {
  for (const value of [
    'socks5://ada:secret@proxy:1',
    'socks5h://proxy:1',
    'http://ada:secret#1@proxy:1',
    'ftp://proxy',
  ]) {
    // Nothing listens there: a connection would fail in another way.
    const client = createClient({ baseUrl: 'http://127.0.0.1:9', environment: { ALL_PROXY: value } });
    await assert.rejects(client.call('getUsage', {}), (error: Error) => {
      assert.ok(error instanceof ProxyError && error.message.startsWith('ALL_PROXY '), error.message);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
});

// curl decodes pairs of hex digits alone: CURLOPT_PROXYUSERPWD, "URL encoded".
test('a password of a proxy may hold a percent sign, and any bytes', () => {
  const sent = (user: string): string => {
    const { 'proxy-authorization': header = '' } = proxyHeaders(new URL(`http://${user}@proxy:1`));
    return Buffer.from(header.replace('Basic ', ''), 'base64').toString('utf8');
  };
  assert.equal(sent('ada:100%'), 'ada:100%');
  assert.equal(sent('ada:1%zz%2'), 'ada:1%zz%2');
  assert.equal(sent('ada:p%40%C3%BC'), 'ada:p@ü');
  assert.equal(sent('ada:ü'), 'ada:ü');
});
