/**
 * The addresses that proxies put in front of a request, in one of two headers: X-Forwarded-For, which has no standard,
 * or Forwarded (RFC 7239). `STRATA_FORWARDED_HEADER` names the one that counts, since a proxy that writes one passes on
 * what a client wrote in the other.
 *
 * Invariants: a header is read from the right, where the nearest proxy writes, so nothing that a client wrote to the
 * left of it changes what that proxy said.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

export const FORWARDED_HEADERS = ['x-forwarded-for', 'forwarded'] as const;
export type ForwardedHeader = (typeof FORWARDED_HEADERS)[number];

type Hop =
  | { readonly kind: 'address'; readonly address: string }
  /** The proxy does not tell: `unknown`, or a name that it made up (RFC 7239, sections 6.2 and 6.3). */
  | { readonly kind: 'hidden' }
  | { readonly kind: 'unreadable' };

/** `address`, `address:port`, `[v6]` or `[v6]:port`; RFC 7239 allows a made-up port too (section 6). */
const NODE = /^(?:\[([^\]]*)\]|([^:[\]]+))(?::(?:\d{1,5}|_[\w.-]+))?$/;
const HIDDEN = /^(?:unknown|_[\w.-]+)(?::(?:\d{1,5}|_[\w.-]+))?$/i;

/**
 * Yields the hops of the request, the one that the nearest proxy saw first; null without the header. Node joins what is
 * sent in several lines.
 */
export function hopsOf({ headers }: IncomingMessage, name: ForwardedHeader): Iterable<Hop> | null {
  const header = headers[name];
  if (header === undefined) return null;
  const text = typeof header === 'string' ? header : header.join(',');
  return readHops(text, name === 'forwarded' ? elementHop : hopOf);
}

function* readHops(text: string, read: (element: string) => Hop): Iterable<Hop> {
  for (const element of partsFromRight(text, ',')) yield read(element);
}

/** Returns the IPv4 address of an IPv4-mapped IPv6 address, any other address unchanged. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

function hopOf(text: string): Hop {
  const node = text.trim();
  const [, inBrackets, bare] = NODE.exec(node) ?? [];
  const address = isIP(node) === 0 ? (inBrackets ?? bare ?? '') : node;
  if (isIP(address) !== 0 && (inBrackets === undefined || isIP(address) === 6)) {
    return { kind: 'address', address: plainAddress(address) };
  }
  return { kind: HIDDEN.test(node) ? 'hidden' : 'unreadable' };
}

/** Reads the `for` of one element, such as `for="[2001:db8::17]:4711";proto=https`. */
function elementHop(element: string): Hop {
  const named = [...partsFromRight(element, ';')].flatMap((pair) => /^for=(.*)$/i.exec(pair.trim())?.[1] ?? []);
  const [value = ''] = named;
  const [, quoted] = /^"((?:[^"\\]|\\.)*)"$/.exec(value) ?? [];
  return named.length === 1 ? hopOf(quoted?.replace(/\\(.)/g, '$1') ?? value) : { kind: 'unreadable' };
}

/** Yields the parts between separators that stand in no quoted string. */
function* partsFromRight(text: string, separator: string): Iterable<string> {
  let [end, isQuoted] = [text.length, false];
  for (let at = text.length - 1; at >= 0; at -= 1) {
    if (text[at] === '"' && !isEscaped(text, at)) isQuoted = !isQuoted;
    if (text[at] !== separator || isQuoted) continue;
    yield text.slice(at + 1, end);
    end = at;
  }
  yield text.slice(0, end);
}

/** A backslash that is escaped itself escapes nothing (RFC 9110, section 5.6.4). */
function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}
