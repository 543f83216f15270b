/** Which URLs may be targets, judged by their text alone. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createOwnHosts, parseTarget, type Target } from '../../../adapters/http-egress/target.ts';
import { OUTGOING_URL_LENGTH_MAX } from '../../../core/kernel/limits.ts';

function target(url: string): Target {
  const parsed = parseTarget(url);
  assert.ok(!('fault' in parsed), url);
  return parsed;
}

function fault(url: string): string | null {
  const parsed = parseTarget(url);
  return 'fault' in parsed ? parsed.fault : null;
}

describe('The URL of a target', () => {
  test('names a host, a port and a path', () => {
    assert.deepEqual(target('https://Example.ORG/a/../hook?x=%20y#z'), {
      origin: 'https://example.org',
      path: '/hook?x=%20y',
      host: 'example.org',
      isAddress: false,
      isSecure: true,
      port: 443,
    });
    assert.equal(target('HTTPS://example.org:8443').port, 8443);
    assert.equal(target('https://example.org').path, '/');
    assert.deepEqual(
      ['https://192.0.2.1:1/', 'https://[2001:DB8::1]/'].map((url) => [target(url).host, target(url).isAddress]),
      [
        ['192.0.2.1', true],
        ['2001:db8::1', true],
      ],
    );
  });

  test('must be of HTTPS', () => {
    for (const url of ['http://example.org', 'ftp://example.org', 'file:///etc/passwd', 'javascript:1', 'ws://x.y']) {
      assert.equal(fault(url), 'url-not-https', url);
    }
  });

  test('must hold no user information, which would be stored and shown, or hide the real host', () => {
    for (const url of [
      'https://user:secret@example.org/',
      'https://user@example.org/',
      'https://:secret@example.org/',
      'https://@example.org/',
      'https://example.org%2f@127.0.0.1/',
      'https://example.org:443@127.0.0.1/',
      'https://a@b@example.org/',
    ]) {
      assert.equal(fault(url), 'url-with-credentials', url);
    }
    assert.equal(fault('https://example.org/@user?a@b'), null);
  });

  test('must be one that all parsers read alike', () => {
    for (const url of [
      '',
      'example.org',
      'https:example.org',
      'https:/example.org',
      'https:///example.org',
      'https://',
      'https://?x',
      'https://exa mple.org',
      'https://exa\tmple.org',
      'https://example.org/\n',
      ' https://example.org',
      'https://example.org\\@127.0.0.1/',
      'https:\\\\example.org',
      'https://example.org/\0',
      'https://example.org/\u2028',
      'https://example.org:0/',
      'https://example.org:65536/',
      'https://example.org:-1/',
      'https://[::1',
      'https://[fe80::1%25eth0]/',
      'https://[fe80::1%eth0]/',
      'https://[::1]x/',
      'https://1.2.3.256/',
      'https://1.2.3.4.5/',
      'https://a%00b.org/',
      'https://a%2fb.org/',
      'https://a<b.org/',
    ]) {
      assert.notEqual(fault(url), null, JSON.stringify(url));
    }
  });

  test('may be as long as the limit, and not longer', () => {
    const start = 'https://example.org/';
    assert.equal(fault(start.padEnd(OUTGOING_URL_LENGTH_MAX, 'x')), null);
    assert.equal(fault(start.padEnd(OUTGOING_URL_LENGTH_MAX + 1, 'x')), 'url-too-long');
  });
});

describe("The service's own hosts", () => {
  const urls = [
    'https://Git.Example.org',
    'http://203.0.113.7:8080/base',
    'https://[2001:db8::7]:444',
    'http://bücher.example',
  ];

  test('are the hosts of its URLs on any port, in any notation', () => {
    const isOwn = createOwnHosts(urls, false);
    for (const url of [
      'https://git.example.org/',
      'https://GIT.example.org:8443/x',
      'https://git.example.org./',
      'https://ｇｉｔ.example.org/',
      'https://git%2Eexample.org/',
      'https://git。example.org/',
      'https://203.0.113.7/',
      'https://3405803783/',
      'https://0xcb.0x0.0x71.0x7/',
      'https://[::ffff:203.0.113.7]/',
      'https://[::ffff:cb00:7107]:99/',
      'https://[2001:db8:0::0007]/',
      'https://xn--bcher-kva.example/',
      'https://BÜCHER.example/',
    ]) {
      assert.ok(isOwn(target(url)), url);
    }
    for (const url of ['https://example.org/', 'https://x.git.example.org/', 'https://203.0.113.8/']) {
      assert.ok(!isOwn(target(url)), url);
    }
  });

  test('are those hosts on their own ports only, where private targets are allowed', () => {
    const isOwn = createOwnHosts([...urls, 'https://localhost'], true);
    for (const url of [
      'https://git.example.org/',
      'https://git.example.org.:443/',
      'https://203.0.113.7:8080/',
      'https://localhost/',
    ]) {
      assert.ok(isOwn(target(url)), url);
    }
    for (const url of ['https://git.example.org:8443/', 'https://203.0.113.7/', 'https://localhost:9443/']) {
      assert.ok(!isOwn(target(url)), url);
    }
  });
});
