/** Which addresses are public, compared with a separate table and with Node's own matching of ranges. */
import assert from 'node:assert/strict';
import { BlockList, isIP } from 'node:net';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { canonicalAddress, isPublicAddress, isPublicName } from '../../../adapters/http-egress/addresses.ts';
import { createHttpEgress } from '../../../adapters/http-egress/egress.ts';

/** Written from IANA's registries, independent of the adapter's table; `net.BlockList` matches the prefixes. */
const FORBIDDEN: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
];

const forbidden4 = new BlockList();
for (const [network, prefix] of FORBIDDEN) forbidden4.addSubnet(network, prefix, 'ipv4');
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');
const forbidden6 = new BlockList();
for (const [network, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3ffe::', 16],
  ['3fff::', 20],
] as const) {
  forbidden6.addSubnet(network, prefix, 'ipv6');
}

const octet = fc.integer({ min: 0, max: 255 });
const anyIpv4 = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'));
/** Near the edges of forbidden ranges: the first and last address of each, and their neighbours. */
const edgeIpv4 = fc
  .tuple(fc.constantFrom(...FORBIDDEN), fc.boolean(), fc.integer({ min: -2, max: 2 }))
  .map(([[network, prefix], last, distance]) => {
    const first = network.split('.').reduce((number, part) => number * 256 + Number(part), 0);
    const edge = last ? first + 2 ** (32 - prefix) - 1 : first;
    const number = Math.min(Math.max(edge + distance, 0), 2 ** 32 - 1);
    return [24, 16, 8, 0].map((shift) => Math.floor(number / 2 ** shift) % 256).join('.');
  });
const group = fc.integer({ min: 0, max: 0xffff });
const firstGroup = fc.oneof(
  group,
  fc.constantFrom(
    0,
    0x64,
    0x100,
    0x2000,
    0x2001,
    0x2002,
    0x2620,
    0x3ffe,
    0x3fff,
    0x4000,
    0xfc00,
    0xfd00,
    0xfe80,
    0xff02,
  ),
);
const anyIpv6 = fc
  .tuple(firstGroup, fc.oneof(group, fc.constantFrom(0, 0xdb8, 0x4f)), fc.array(group, { minLength: 6, maxLength: 6 }))
  .map(([first, second, rest]) => [first, second, ...rest].map((part) => part.toString(16)).join(':'));

/** One of the texts by which the URL parser knows an IPv4 address: 1 to 4 parts, each in one of three bases. */
const anyNotation = fc
  .tuple(
    fc.oneof(anyIpv4, edgeIpv4),
    fc.integer({ min: 1, max: 4 }),
    fc.array(fc.constantFrom('decimal', 'octal', 'hex', 'HEX', 'padded'), { minLength: 4, maxLength: 4 }),
    fc.constantFrom('plain', 'dot', 'encoded', 'wide', 'mapped', 'NAT64'),
  )
  .map(([address, parts, bases, dress]) => {
    const octets = address.split('.').map(Number);
    const last = octets.slice(parts - 1).reduce((number, octet) => number * 256 + octet, 0);
    const numbers = [...octets.slice(0, parts - 1), last];
    const text = numbers.map((number, index) => inBase(number, bases[index] ?? 'decimal')).join('.');
    return { address, host: dressed(text, address, dress) };
  });

function inBase(number: number, base: string): string {
  switch (base) {
    case 'octal':
      return `0${number.toString(8)}`;
    case 'hex':
      return `0x${number.toString(16)}`;
    case 'HEX':
      return `0X${number.toString(16).toUpperCase()}`;
    case 'padded':
      return `0x000000${number.toString(16)}`;
    default:
      return String(number);
  }
}

function dressed(text: string, address: string, dress: string): string {
  switch (dress) {
    case 'dot':
      return `${text}.`;
    case 'encoded':
      return text.replaceAll(/./g, (character) => `%${character.charCodeAt(0).toString(16)}`);
    case 'wide':
      return text.replaceAll(/[0-9]/g, (digit) => String.fromCodePoint(0xff10 + Number(digit))).replaceAll('.', '。');
    case 'mapped':
      return `[::ffff:${address}]`;
    case 'NAT64':
      return `[64:ff9b::${hexTail(address)}]`;
    default:
      return text;
  }
}

function hexTail(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number);
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

describe('An address', () => {
  test('of IPv4 is public exactly where no registered range holds it', () => {
    fc.assert(
      fc.property(fc.oneof(anyIpv4, edgeIpv4), (address) => {
        assert.equal(isPublicAddress(address), !forbidden4.check(address, 'ipv4'), address);
      }),
      { numRuns: 5_000 },
    );
  });

  test('of IPv6 is public exactly in the global space, outside of its special ranges', () => {
    fc.assert(
      fc.property(anyIpv6, (address) => {
        const isPublic = global6.check(address, 'ipv6') && !forbidden6.check(address, 'ipv6');
        // These hold an IPv4 address, which the next test covers.
        fc.pre(!/^(64:ff9b|0:0):0:0:0:(0|ffff):/.test(address));
        assert.equal(isPublicAddress(address), isPublic, address);
      }),
      { numRuns: 5_000 },
    );
  });

  test('of IPv4 inside IPv6 is judged as IPv4 in the two forms that reach it, and is never public in others', () => {
    fc.assert(
      fc.property(fc.oneof(anyIpv4, edgeIpv4), (address) => {
        const isPublic = !forbidden4.check(address, 'ipv4');
        for (const form of [address, hexTail(address)]) {
          assert.equal(isPublicAddress(`::ffff:${form}`), isPublic, 'mapped');
          assert.equal(isPublicAddress(`64:ff9b::${form}`), isPublic, 'NAT64');
          assert.equal(isPublicAddress(`::${form}`), false, 'compatible');
          assert.equal(isPublicAddress(`::ffff:0:${form}`), false, 'translated');
          assert.equal(isPublicAddress(`64:ff9b:1::${form}`), false, 'local NAT64');
          assert.equal(isPublicAddress(`2001::${form}`), false, 'Teredo');
          assert.equal(isPublicAddress(`fe80::5efe:${form}`), false, 'ISATAP on a link');
        }
        assert.equal(isPublicAddress(`2002:${hexTail(address)}::1`), false, '6to4');
        for (const identifier of ['0', '100', '200', '300']) {
          const isatap = `2606:4700:4700:1:${identifier}:5efe:${hexTail(address)}`;
          assert.equal(isPublicAddress(isatap), false, isatap);
          assert.equal(isPublicAddress(isatap.replace('5efe', '5eff')), true, 'no ISATAP');
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('is judged alike in every notation that a URL may use', async () => {
    const outgoing = createHttpEgress({ ownUrls: [], privateAllowed: false, ownAddresses: () => [] });
    await fc.assert(
      fc.asyncProperty(anyNotation, async ({ address, host }) => {
        const expected = forbidden4.check(address, 'ipv4') ? 'address-not-public' : null;
        assert.equal(await outgoing.check(`https://${host}/`), expected, `${host} is ${address}`);
      }),
      { numRuns: 3_000 },
    );
  });

  test('that ipaddr.js calls unicast but that is reserved is not public', () => {
    for (const address of [
      '::127.0.0.1',
      '168.63.129.16',
      '::10.0.0.1',
      '::ffff:168.63.129.16',
      '64:ff9b::a83f:8110',
    ]) {
      assert.equal(isPublicAddress(address), false, address);
    }
  });

  test("of a cloud's metadata service is not public", () => {
    const metadata = ['169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', '192.0.0.192'];
    for (const address of [
      ...metadata,
      'fd00:ec2::254',
      'fd20:ce::254',
      '::ffff:a9fe:a9fe',
      '64:ff9b::169.254.169.254',
    ]) {
      assert.equal(isPublicAddress(address), false, address);
    }
  });

  test('is parsed strictly: other notations, zones and text that is no address are not public', () => {
    for (const text of [
      '',
      '0x08.8.8.8',
      '010.8.8.8',
      '8.8.8',
      '134744072',
      '8.8.8.8.',
      ' 8.8.8.8',
      '8.8.8.8/8',
      'a.b',
      '[2600::1]',
    ]) {
      assert.equal(isPublicAddress(text), false, text);
    }
    assert.equal(isPublicAddress('fe80::1%eth0'), false);
    assert.equal(isPublicAddress('8.8.8.8'), true);
    assert.equal(isPublicAddress('2606:4700:4700::1111'), true);
  });

  test("of the 6bone is not public, its neighbours' are", () => {
    assert.equal(isPublicAddress('3ffe::1'), false);
    assert.equal(isPublicAddress('3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff'), false);
    assert.equal(isPublicAddress('3ffd:ffff::1'), true);
  });

  test('has one canonical text, whatever its notation', () => {
    fc.assert(
      fc.property(anyIpv4, (address) => {
        assert.equal(canonicalAddress(address), address);
        assert.equal(canonicalAddress(`::FFFF:${address}`), address);
        assert.equal(canonicalAddress(`0:0:0:0:0:ffff:${hexTail(address)}`), address);
      }),
    );
    fc.assert(
      fc.property(anyIpv6, (address) => {
        const once = canonicalAddress(address) ?? '';
        assert.notEqual(isIP(once), 0);
        assert.equal(canonicalAddress(address.toUpperCase()), once);
        assert.equal(canonicalAddress(once), once);
      }),
    );
    assert.equal(canonicalAddress('fe80::1%lo'), canonicalAddress('fe80::1'));
    assert.equal(canonicalAddress('example.org'), null);
  });
});

/** The attack: the resolver, the hosts file or the search list of this machine knows names that no stranger's does. */
describe('A host name', () => {
  const names = [
    '.',
    '..',
    'metadata',
    'metadata.',
    'localhost',
    'LocalHost',
    'db.localhost',
    'localhost.localdomain',
    'localhost.localdomain.',
    'localhost.local',
    'printer.local',
    'metadata.google.internal',
    'Metadata.Google.INTERNAL.',
    'internal',
    'ip-10-0-0-1.ec2.internal',
    'example.org..',
    'a..org',
    '.example.org',
  ];

  test('of this machine or its network is not public, and neither is one with an empty label', () => {
    for (const name of names) assert.equal(isPublicName(name), false, name);
    for (const name of ['example.org', 'example.org.', 'internal.example.org', 'local.example.org', 'x.internals']) {
      assert.equal(isPublicName(name), true, name);
    }
  });

  test('that is not public is refused before it is looked up, unless private targets are allowed', async () => {
    const looked: string[] = [];
    const lookup = async (name: string): Promise<{ readonly addresses: readonly string[] }> => {
      looked.push(name);
      return { addresses: ['8.8.8.8'] };
    };
    const options = { ownUrls: [], ownAddresses: () => [], lookup };
    const strict = createHttpEgress({ ...options, privateAllowed: false });
    const lenient = createHttpEgress({ ...options, privateAllowed: true });
    for (const name of names) {
      assert.equal(await strict.check(`https://${name}/`), 'address-not-public', name);
      assert.equal(await lenient.check(`https://${name}/`), null, name);
    }
    assert.equal(looked.length, names.length);
    assert.equal(await strict.check('https://example.org./'), null);
  });
});
