/**
 * The attack: with a webhook's URL, a user chooses where this server connects to: itself, the host of its database, the
 * cloud's metadata. The tests try every notation of a forbidden address, names that resolve to one, and names that
 * resolve to one only at the second lookup.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import path from 'node:path';
import { describe, type TestContext, test, vi } from 'vitest';
import type { Dial } from '../../../adapters/http-egress/connection.ts';
import {
  createHttpEgress,
  type HttpEgressOptions,
  TARGET_CHECK_SPAN_MS,
} from '../../../adapters/http-egress/egress.ts';
import { createNameLookup } from '../../../adapters/http-egress/name-lookup.ts';
import type { Exchange } from '../../../core/kernel/exchange.ts';
import type { OutgoingRequest, OutgoingRequests } from '../../../core/ports/outgoing-requests.ts';
import { createAuthority } from '../../support/certificates.ts';
import { type DnsServer, startDnsServer } from '../../support/dns-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { tempDir } from '../../support/temp-dir.ts';

const PUBLIC = '93.184.216.34';
const PUBLIC_IPV6 = '2606:2800:220:1::1';

/** A dial that fails, and records the addresses that it got. */
function recordingDial(): { readonly dial: Dial; readonly dialled: (readonly string[])[] } {
  const dialled: (readonly string[])[] = [];
  const dial: Dial = (addresses) => {
    dialled.push(addresses);
    // Nothing listens on a port that was just closed.
    return connect({ host: '127.0.0.1', port: closedPort });
  };
  return { dial, dialled };
}

const probe = createServer().listen(0, '127.0.0.1');
await once(probe, 'listening');
const { port: closedPort } = probe.address() as AddressInfo;
probe.close();

function egress(options: Partial<HttpEgressOptions> = {}): OutgoingRequests {
  return createHttpEgress({
    ownUrls: ['https://git.example.org'],
    privateAllowed: false,
    ownAddresses: () => [],
    ...options,
  });
}

function send(outgoing: OutgoingRequests, url: string, more: Partial<OutgoingRequest> = {}): Promise<Exchange> {
  const request: OutgoingRequest = {
    url,
    method: 'POST',
    headers: {},
    body: Buffer.from('{}'),
    spanMs: 20_000,
    answerBytesMax: 100,
  };
  return outgoing.send({ ...request, ...more });
}

function byDns(server: DnsServer): Pick<HttpEgressOptions, 'lookup'> {
  return { lookup: createNameLookup({ servers: [server.address], hostsFile: '/nonexistent' }) };
}

describe('A target that is an address', () => {
  const FORBIDDEN: readonly (readonly [what: string, hosts: readonly string[]])[] = [
    ['loopback', ['127.0.0.1', '127.255.255.254', '[::1]', '[0:0:0:0:0:0:0:1]', '[0000::0001]']],
    ['loopback in decimal', ['2130706433', '2130706433.', '017700000001', '0x7f000001', '0X7F000001', '0x7F.1']],
    [
      'loopback in parts',
      ['127.1', '127.0.1', '0177.0.0.1', '0x7f.0x0.0x0.0x1', '127.0x0.1', '0177.1', '127.00.0.001'],
    ],
    ['loopback with a dot at its end', ['127.0.0.1.', '127.1.', '0x7f.1.']],
    ['loopback encoded', ['%31%32%37%2e0.0.1', '127%2E0%2E0%2E1', '127.0.0.%31', '%30x7f.1']],
    [
      'loopback in other digits and dots',
      ['①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1', '127．0．0．1', '𝟏𝟐𝟕.𝟎.𝟎.𝟏'],
    ],
    ['loopback mapped', ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::FFFF:7F00:0001]', '[0:0:0:0:0:ffff:127.0.0.1]']],
    ['loopback compatible', ['[::127.0.0.1]', '[::7f00:1]', '[0::127.0.0.1]']],
    ['loopback translated', ['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[::ffff:0:7f00:1]', '[64:ff9b:1::7f00:1]']],
    ['loopback tunnelled', ['[2002:7f00:1::1]', '[2001:0:7f00:1::]', '[2001::80ff:fffe]']],
    ['nothing', ['0.0.0.0', '0', '0x0', '00', '[::]', '0.0.0.1', '[::ffff:0:0]']],
    [
      'private',
      [
        '10.0.0.1',
        '10.1',
        '172.16.0.1',
        '172.31.255.255',
        '192.168.0.1',
        '0xc0a80001',
        '3232235521',
        '[fd00::1]',
        '[fc00::1]',
      ],
    ],
    ['of a carrier', ['100.64.0.1', '100.127.255.255']],
    [
      'metadata',
      [
        '169.254.169.254',
        '2852039166',
        '0xa9fea9fe',
        '0251.0376.0251.0376',
        '169.254.43518',
        '[::ffff:a9fe:a9fe]',
        '[fd00:ec2::254]',
        '168.63.129.16',
        '2822734096',
        '100.100.100.200',
        '192.0.0.192',
      ],
    ],
    ['of a link', ['169.254.0.1', '[fe80::1]', '[febf::1]', '[fec0::1]']],
    ['many', ['224.0.0.1', '239.255.255.255', '255.255.255.255', '4294967295', '[ff02::1]']],
    ['documentation', ['192.0.2.1', '198.51.100.1', '203.0.113.1', '[2001:db8::1]', '[3fff::1]']],
    ['special', ['192.88.99.1', '198.18.0.1', '240.0.0.1', '[100::1]', '[5f00::1]', '[2001:2::1]', '[4000::1]']],
  ];

  for (const [what, hosts] of FORBIDDEN) {
    test(`is refused when it is ${what}, in every notation, when saved and when sent to`, async () => {
      const { dial, dialled } = recordingDial();
      const outgoing = egress({ dial });
      for (const host of hosts) {
        for (const url of [`https://${host}/`, `https://${host}:8443/hook?x=1`]) {
          assert.equal(await outgoing.check(url), 'address-not-public', url);
          assert.deepEqual(await send(outgoing, url), { outcome: 'refused', fault: 'address-not-public' }, url);
        }
      }
      assert.deepEqual(dialled, []);
    });
  }

  test('is dialled when it is public, in any notation', async () => {
    const { dial, dialled } = recordingDial();
    const outgoing = egress({ dial });
    for (const host of [
      PUBLIC,
      '0x5db8d822',
      '1572395042',
      '93.12113954',
      `[${PUBLIC_IPV6}]`,
      `[64:ff9b::${PUBLIC}]`,
    ]) {
      assert.equal(await outgoing.check(`https://${host}/`), null, host);
      assert.equal((await send(outgoing, `https://${host}/`)).outcome, 'failed', host);
    }
    assert.deepEqual(dialled, [[PUBLIC], [PUBLIC], [PUBLIC], [PUBLIC], [PUBLIC_IPV6], ['64:ff9b::5db8:d822']]);
  });

  test('is refused when it is an address of this machine, public or not', async () => {
    const outgoing = egress({ ownAddresses: () => [`::ffff:${PUBLIC}`, PUBLIC_IPV6] });
    assert.equal(await outgoing.check(`https://${PUBLIC}/`), 'own-host');
    assert.equal(await outgoing.check('https://[2606:2800:220:1:0:0:0:1]/'), 'own-host');
  });
});

describe('The endpoint of a bucket', () => {
  test('obeys the rules of every target, and may be HTTP only where private targets are allowed', async () => {
    const strict = egress();
    assert.equal(await strict.checkEndpoint(`https://${PUBLIC}`), null);
    assert.equal(await strict.checkEndpoint(`http://${PUBLIC}`), 'url-not-https');
    assert.equal(await strict.checkEndpoint('https://127.0.0.1:9000'), 'address-not-public');
    const lenient = egress({ privateAllowed: true, ownUrls: ['http://127.0.0.1:8080', 'http://127.0.0.2'] });
    assert.equal(await lenient.checkEndpoint('http://127.0.0.1:9000'), null);
    assert.equal(await lenient.checkEndpoint('https://127.0.0.1:9000'), null);
    assert.equal(await lenient.check('http://127.0.0.1:9000'), 'url-not-https', 'a webhook never is');
    for (const own of ['http://127.0.0.1:8080', 'http://127.0.0.2', 'http://127.0.0.2:80/']) {
      assert.equal(await lenient.checkEndpoint(own), 'own-host', own);
    }
    assert.equal(await lenient.checkEndpoint('http://user:secret@127.0.0.1:9000'), 'url-with-credentials');
  });
});

describe('A target that is a name', () => {
  test('of the loopback is refused without a query to a name server', async (context) => {
    const dns = await startDnsServer(context);
    const outgoing = egress(byDns(dns));
    for (const name of [
      'localhost',
      'LOCALHOST',
      'localhost.',
      'x.localhost',
      'ｌｏｃａｌｈｏｓｔ',
      'local%68ost',
      'ⓛocalhost',
    ]) {
      assert.equal(await outgoing.check(`https://${name}/`), 'address-not-public', name);
    }
    assert.deepEqual(dns.questions, []);
  });

  test('is refused when any of its addresses is forbidden, at any place in the list', async (context) => {
    const dns = await startDnsServer(context);
    const { dial, dialled } = recordingDial();
    const outgoing = egress({ ...byDns(dns), dial });
    for (const bad of [
      '127.0.0.1',
      '169.254.169.254',
      '::1',
      '::ffff:10.0.0.1',
      '::10.0.0.1',
      'fd00:ec2::254',
      '168.63.129.16',
    ]) {
      for (const answer of [[bad], [bad, PUBLIC], [PUBLIC, bad], [PUBLIC, PUBLIC_IPV6, bad]]) {
        dns.answer('rebind.example', answer);
        assert.equal(await outgoing.check('https://rebind.example/'), 'address-not-public', String(answer));
        assert.deepEqual(await send(outgoing, 'https://rebind.example/'), {
          outcome: 'refused',
          fault: 'address-not-public',
        });
      }
    }
    assert.deepEqual(dialled, []);
  });

  test('is refused when it is an alias of a name with a forbidden address, and only then', async (context) => {
    const dns = await startDnsServer(context);
    const { dial, dialled } = recordingDial();
    const outgoing = egress({ ...byDns(dns), dial });
    for (const addresses of [['10.0.0.1'], [PUBLIC, '127.0.0.1'], [PUBLIC, '::1'], ['169.254.169.254']]) {
      dns.answer('alias.example', { alias: 'metadata.internal', addresses });
      assert.equal(await outgoing.check('https://alias.example/'), 'address-not-public', String(addresses));
      const refused = { outcome: 'refused', fault: 'address-not-public' };
      assert.deepEqual(await send(outgoing, 'https://alias.example/'), refused);
    }
    assert.deepEqual(dialled, []);
    dns.answer('alias.example', { alias: 'receiver.example', addresses: [PUBLIC, PUBLIC_IPV6] });
    await send(outgoing, 'https://alias.example/');
    assert.deepEqual(dialled, [[PUBLIC, PUBLIC_IPV6]]);
  });

  test('is refused when it is a name of this service, in any form', async (context) => {
    const dns = await startDnsServer(context);
    const outgoing = egress(byDns(dns));
    for (const host of [
      'git.example.org',
      'GIT.EXAMPLE.ORG',
      'git.example.org.',
      'ｇｉｔ。example.org',
      'git.example.org:9',
    ]) {
      assert.equal(await outgoing.check(`https://${host}/`), 'own-host', host);
    }
    assert.deepEqual(dns.questions, []);
  });

  test('that resolves to a forbidden address since it was saved is refused at the attempt', async (context) => {
    const dns = await startDnsServer(context);
    const { dial, dialled } = recordingDial();
    const outgoing = egress({ ...byDns(dns), dial });
    dns.answer('rebind.example', [PUBLIC]);
    assert.equal(await outgoing.check('https://rebind.example/'), null);
    dns.answer('rebind.example', ['127.0.0.1']);
    assert.deepEqual(await send(outgoing, 'https://rebind.example/'), {
      outcome: 'refused',
      fault: 'address-not-public',
    });
    assert.deepEqual(dialled, []);
  });

  test('that changes between check and connection is connected to at its checked addresses', async (context) => {
    const dns = await startDnsServer(context);
    const { dial, dialled } = recordingDial();
    const outgoing = egress({ ...byDns(dns), dial });
    // The first query of each family gets a public address, the next ones the loopback.
    let queries = 0;
    dns.answer('rebind.example', () => (queries++ < 2 ? [PUBLIC, PUBLIC_IPV6] : ['127.0.0.1', '::1']));
    await send(outgoing, 'https://rebind.example/');
    assert.deepEqual(dialled, [[PUBLIC, PUBLIC_IPV6]]);
    assert.equal(dns.questions.length, 2, 'the name is not looked up again');
  });

  test('is sent nothing when the peer has another address than the checked ones', async (context) => {
    const dns = await startDnsServer(context);
    dns.answer('receiver.example', [PUBLIC]);
    const authority = createAuthority();
    const receiver = await startReceiver(context, authority.issue(['receiver.example']));
    // Imitates a connection that is redirected after the check.
    const dial: Dial = () => connect({ host: '127.0.0.1', port: receiver.port });
    const outgoing = egress({ ...byDns(dns), dial, authorities: [authority.cert] });
    assert.deepEqual(await send(outgoing, `https://receiver.example:${receiver.port}/`), {
      outcome: 'refused',
      fault: 'peer-not-checked',
    });
    assert.deepEqual(receiver.serverNames, [], 'no handshake begins');
  });

  test('that cannot be found now may be saved, and fails at the attempt', async (context) => {
    const dns = await startDnsServer(context);
    const outgoing = egress(byDns(dns));
    dns.answer('failing.example', 'failing');
    dns.answer('empty.example', []);
    for (const [name, failure] of [
      ['absent.example', 'name-not-found'],
      ['empty.example', 'name-not-found'],
      ['failing.example', 'name-lookup-failed'],
    ] as const) {
      assert.equal(await outgoing.check(`https://${name}/`), null, name);
      const ended = await send(outgoing, `https://${name}/`);
      assert.ok(ended.outcome === 'failed' && ended.failure === failure, JSON.stringify(ended));
    }
  });

  test('is looked up to the end of its time when it is saved, and one found later may be saved', async (context) => {
    vi.useFakeTimers();
    context.onTestFinished(() => void vi.useRealTimers());
    for (const [afterMs, fault] of [
      [TARGET_CHECK_SPAN_MS - 1, 'address-not-public'],
      [TARGET_CHECK_SPAN_MS + 1, null],
    ] as const) {
      const outgoing = egress({
        lookup: (_host, signal) =>
          new Promise((resolve, reject) => {
            signal.addEventListener('abort', () => reject(new Error('The time is over')));
            setTimeout(() => resolve({ addresses: ['10.0.0.1'] }), afterMs);
          }),
      });
      const checked = outgoing.check('https://slow.example/');
      await vi.advanceTimersByTimeAsync(afterMs);
      assert.equal(await checked, fault, `${afterMs} ms`);
    }
  });

  test('whose name server never answers fails at the timeout, and blocks no thread', async (context) => {
    const dns = await startDnsServer(context);
    dns.answer('silent.example', 'silent');
    const outgoing = egress(byDns(dns));
    const sent = await Promise.all(
      Array.from({ length: 8 }, () => send(outgoing, 'https://silent.example/', { spanMs: 200 })),
    );
    for (const ended of sent) {
      assert.deepEqual(ended, { outcome: 'failed', failure: 'timed-out', status: null, detail: null });
    }
  });
});

describe('Where private targets are allowed', () => {
  test('private addresses are allowed; the rules on HTTPS, own hosts and user information still apply', async () => {
    const outgoing = egress({ privateAllowed: true, ownUrls: ['http://localhost:8080', 'https://git.example.org'] });
    for (const host of ['127.0.0.1:8080', 'localhost:9443', '10.0.0.1', '[::1]', '169.254.169.254', '192.168.1.1']) {
      assert.equal(await outgoing.check(`https://${host}/`), null, host);
    }
    assert.equal(await outgoing.check('http://127.0.0.1/'), 'url-not-https');
    assert.equal(await outgoing.check('https://user:secret@127.0.0.1/'), 'url-with-credentials');
    assert.equal(await outgoing.check('https://localhost:8080/'), 'own-host');
    assert.equal(await outgoing.check('https://git.example.org/'), 'own-host');
  });

  test('a request reaches its receiver with server name, Host and body, at an address of its name', async (context) => {
    const { receiver, outgoing } = await reachable(context, ['receiver.example']);
    const ended = await send(outgoing, `https://receiver.example:${receiver.port}/hook?a=1`, {
      headers: { 'content-type': 'application/json', 'user-agent': 'Strata-Webhook/1.2.3' },
      body: Buffer.from('{"a":1}'),
    });
    assert.deepEqual(ended, { outcome: 'answered', status: 204, body: Buffer.alloc(0), extent: 'whole' });
    assert.deepEqual(receiver.serverNames, ['receiver.example']);
    const [head = '', body] = receiver.requests[0]?.split('\r\n\r\n') ?? [];
    assert.equal(body, '{"a":1}');
    assert.deepEqual(
      head
        .split('\r\n')
        .map((line) => line.toLowerCase())
        .toSorted(),
      [
        'connection: close',
        'content-length: 7',
        'content-type: application/json',
        `host: receiver.example:${receiver.port}`,
        'post /hook?a=1 http/1.1',
        'user-agent: strata-webhook/1.2.3',
      ],
    );
  });

  test('a request to an address needs a certificate for it, and sends no server name', async (context) => {
    const { receiver, outgoing } = await reachable(context, ['127.0.0.1']);
    const ended = await send(outgoing, `https://127.0.0.1:${receiver.port}/`, { method: 'GET', body: null });
    assert.equal(ended.outcome, 'answered');
    assert.deepEqual(receiver.serverNames, [null]);
    assert.match(receiver.requests[0] ?? '', /^GET \/ HTTP\/1\.1\r\n/);
  });

  test('a request uses the first address that accepts the connection', async (context) => {
    const { receiver, outgoing, dns } = await reachable(context, ['receiver.example']);
    // No server listens on 127.0.0.9.
    dns.answer('receiver.example', ['127.0.0.9', '127.0.0.1']);
    assert.equal((await send(outgoing, `https://receiver.example:${receiver.port}/`)).outcome, 'answered');
    assert.equal((await send(outgoing, `https://receiver.example.:${receiver.port}/`)).outcome, 'answered');
  });
});

async function reachable(context: TestContext, hosts: readonly string[]) {
  const dns = await startDnsServer(context);
  for (const host of hosts) dns.answer(host, ['127.0.0.1']);
  const authority = createAuthority();
  const receiver = await startReceiver(context, authority.issue(hosts));
  const outgoing = egress({ ...byDns(dns), privateAllowed: true, authorities: [authority.cert] });
  return { dns, receiver, outgoing };
}

describe('A lookup whose signal is aborted', () => {
  test('sends no query', async (context) => {
    const dns = await startDnsServer(context);
    const lookup = createNameLookup({ servers: [dns.address], hostsFile: '/nonexistent' });
    await assert.rejects(lookup('receiver.example', AbortSignal.abort()), { name: 'AbortError' });
    assert.deepEqual(dns.questions, []);
  });
});

describe('A name in the hosts file', () => {
  test('is found there first, in upper or lower case', async (context) => {
    const file = path.join(await tempDir(context), 'hosts');
    await writeFile(
      file,
      '# comment\n127.0.0.5 inner.example Other # more\n::5\tinner.example\nnonsense inner.example\n',
    );
    const dns = await startDnsServer(context);
    const lookup = createNameLookup({ servers: [dns.address], hostsFile: file });
    const { signal } = new AbortController();
    assert.deepEqual(await lookup('INNER.example.', signal), { addresses: ['127.0.0.5', '::5'] });
    assert.deepEqual(await lookup('other', signal), { addresses: ['127.0.0.5'] });
    assert.deepEqual(dns.questions, []);
  });
});
