/** HTTP requests as bytes: the head of each input, and changes to heads. */
import type { Dice } from '../support/seeded.ts';
import { hostileText, mutateBytes, mutateText } from './mutations.ts';

export interface Draft {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Null for a request without a body. */
  readonly body: Buffer | null;
}

const CHUNKED_SHARE = 0.15;
const CRLF = '\r\n';

/** Writes the request; the body is sent with its length, or in chunks. */
export function requestBytes(dice: Dice, { method, target, headers, body }: Draft): Buffer {
  const chunked = body !== null && dice.chance(CHUNKED_SHARE);
  const framing: (readonly [string, string])[] =
    body === null ? [] : [chunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', `${body.length}`]];
  const lines = [
    `${method} ${target} HTTP/1.1`,
    'Host: localhost',
    // Each client has an address of its own, or the limits of one address would refuse nearly everything.
    `X-Forwarded-For: 10.0.${dice.below(256)}.${dice.below(256)}`,
    ...[...headers, ...framing].map(([name, value]) => `${name}: ${value}`),
  ];
  const head = Buffer.from(`${lines.join(CRLF)}${CRLF}${CRLF}`, 'latin1');
  if (body === null) return head;
  return Buffer.concat([head, ...(chunked ? chunksOf(dice, body) : [body])]);
}

function chunksOf(dice: Dice, body: Buffer): readonly Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const piece = body.subarray(at, at + 1 + dice.below(dice.chance(0.5) ? 64 : 65_536));
    parts.push(Buffer.from(`${piece.length.toString(16)}${CRLF}`), piece, Buffer.from(CRLF));
    at += piece.length;
  }
  return [...parts, Buffer.from(`0${CRLF}${CRLF}`)];
}

const HEADERS: Readonly<Record<string, readonly string[]>> = {
  'Content-Length': ['-1', '0', '5', '99999999999', '1e3', '5, 5', '+5', '0x5', ''],
  'Transfer-Encoding': ['chunked', 'identity', 'gzip, chunked', 'chunked, chunked', 'x', 'Chunked '],
  'Content-Encoding': ['gzip', 'x-gzip', 'deflate', 'br', 'gzip, gzip', 'identity', ''],
  'Content-Type': [
    'application/json',
    'application/json; charset=utf-16',
    'text/plain',
    'multipart/form-data',
    '/',
    '',
  ],
  Accept: ['*/*', 'application/xml', ';q=0', ','.repeat(5_000)],
  'Accept-Encoding': ['gzip', 'gzip;q=0', 'br, *;q=0', 'identity;q=0', ','.repeat(5_000)],
  Authorization: ['Bearer', 'Bearer ', 'Basic', 'Basic =', 'Basic OjpAOg==', 'Bearer strata_x', 'Digest a=b', '\0'],
  Connection: ['close', 'keep-alive', 'upgrade', 'close, keep-alive', 'host'],
  Upgrade: ['websocket', 'h2c', 'TLS/1.0'],
  Expect: ['100-continue', '200-ok', ''],
  Range: ['bytes=0-', 'bytes=-1', 'bytes=5-2', 'bytes=0-0,1-1', 'bytes=9007199254740993-', 'x=1', 'bytes=-0'],
  'If-Range': ['"x"', 'Thu, 01 Jan 1970 00:00:00 GMT'],
  'If-None-Match': ['*', '"x"', 'W/"x"', '"', ',,,', '"a", '.repeat(1_000)],
  'If-Modified-Since': ['Thu, 01 Jan 1970 00:00:00 GMT', 'x'],
  Cookie: [
    'strata_session=x',
    'strata_session=',
    '=',
    ';;;',
    'a=b; a=c',
    '__Host-strata_session=%ff',
    `a=${'b'.repeat(9_000)}`,
  ],
  Host: ['', 'localhost:99999', '[::1', 'a b', 'example.org'],
  Origin: ['null', 'http://localhost', 'https://example.org', 'x'],
  'Sec-Fetch-Site': ['cross-site', 'same-origin', 'none', 'x'],
  'Access-Control-Request-Method': ['PUT', 'x'],
  'Access-Control-Request-Headers': ['authorization', '\t'],
  'Git-Protocol': ['version=2', 'version=1', 'version=99', 'version=2:version=1', 'x'.repeat(5_000), ':'],
  'X-Forwarded-For': ['x', '1.2.3.4, 5.6.7.8', '::1', ','.repeat(2_000), 'fe80::1%eth0', '[::1]:80', '1.2.3.4:5', '"'],
  'X-Forwarded-Proto': ['https', 'x'],
  'X-Request-Id': ['x'.repeat(300), '\u00ff'],
  'X-HTTP-Method-Override': ['DELETE'],
  TE: ['trailers', 'gzip'],
  Trailer: ['Content-Length'],
  'User-Agent': ['', 'git/2.39.5', 'x'.repeat(9_000), '\u00ff\u0080'],
  Referer: ['http://localhost/', '%', 'x'],
};
const METHODS: readonly string[] = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY', 'PROPFIND', 'PRI'],
  ...['get', 'X', 'GÉT'],
];
const VERSIONS: readonly string[] = ['HTTP/1.0', 'HTTP/1.1', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.1 x', 'http/1.1', ''];

/** Changes the head's structure, or any of its bytes. */
export function mutateHead(dice: Dice, bytes: Buffer): Buffer {
  if (dice.chance(0.2)) return mutateBytes(dice, bytes);
  const end = bytes.indexOf(`${CRLF}${CRLF}`);
  const lines = bytes.toString('latin1', 0, end).split(CRLF);
  for (let rounds = 1 + dice.below(3); rounds > 0; rounds -= 1) mutateLines(dice, lines);
  return Buffer.concat([Buffer.from(lines.join(dice.chance(0.95) ? CRLF : '\n'), 'latin1'), bytes.subarray(end)]);
}

function mutateLines(dice: Dice, lines: string[]): void {
  const at = dice.below(lines.length);
  const [first = ''] = lines;
  const [method = '', target = '', version = ''] = first.split(' ');
  switch (dice.below(8)) {
    case 0:
      lines[0] = [dice.pick(METHODS), target, version].join(' ');
      return;
    case 1:
      lines[0] = [method, target, dice.pick(VERSIONS)].join(' ');
      return;
    case 2:
      lines[0] = [method, dice.pick([mutateText(dice, target), `http://localhost${target}`, '*', '']), version].join(
        ' ',
      );
      return;
    case 3:
      if (at > 0) lines.splice(at, 1);
      return;
    case 4:
      lines.push(lines[at] ?? '');
      return;
    case 5:
      lines[at] = mutateText(dice, lines[at] ?? '');
      return;
    default: {
      const name = dice.pick(Object.keys(HEADERS));
      lines.push(`${name}: ${dice.chance(0.1) ? hostileText(dice) : dice.pick(HEADERS[name] ?? [''])}`);
    }
  }
}
