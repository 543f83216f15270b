/**
 * From the text of a URL to the host and port that a connection would go to, or why it may not.
 *
 * Must stay true: a text that two parsers could read as different hosts is refused; the host is what the WHATWG
 * parser makes of it, so that decimal, octal, short, encoded and full-width notations of an address are the address.
 */
import { isIP } from 'node:net';
import { OUTGOING_URL_LENGTH_MAX } from '../../core/kernel/limits.ts';
import type { TargetFault } from '../../core/ports/outgoing-requests.ts';
import { canonicalAddress } from './addresses.ts';

export interface Target {
  /** `https://host:port`, without user information. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly isAddress: boolean;
  readonly port: number;
}

const HTTPS_PORT = 443;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': HTTPS_PORT };
/** Spaces and controls, which parsers drop, and `\`, which some take for `/`. */
const AMBIGUOUS = /[\p{Cc}\p{Z}\\]/u;
const USER_INFORMATION = /^https:\/\/[^/?#]*@/i;

export function parseTarget(text: string): Target | { readonly fault: TargetFault } {
  if (text.length > OUTGOING_URL_LENGTH_MAX) return { fault: 'url-too-long' };
  if (AMBIGUOUS.test(text) || !URL.canParse(text)) return { fault: 'url-malformed' };
  const url = new URL(text);
  if (url.protocol !== 'https:') return { fault: 'url-not-https' };
  // The parser also takes `https:host` and `https:///host`.
  if (!/^https:\/\/[^/]/i.test(text)) return { fault: 'url-malformed' };
  if (USER_INFORMATION.test(text)) return { fault: 'url-with-credentials' };
  const port = portOf(url);
  // Nothing listens there.
  if (port === 0) return { fault: 'url-malformed' };
  const host = hostOf(url);
  return { origin: url.origin, path: url.pathname + url.search, host, isAddress: isIP(host) !== 0, port };
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

function portOf(url: URL): number {
  return url.port === '' ? (DEFAULT_PORTS[url.protocol] ?? HTTPS_PORT) : Number(url.port);
}

/** A host in the form in which equal ones are equal texts. */
function hostKey(host: string): string {
  return canonicalAddress(host) ?? host.toLowerCase().replace(/\.$/, '');
}

/**
 * Whether a target is this service itself: a host of its own URLs, on any port; where private targets are
 * allowed, and a receiver may well run beside it, that host and port.
 */
export function createOwnHosts(urls: readonly string[], privateAllowed: boolean): (target: Target) => boolean {
  const keyOf = (host: string, port: number): string => (privateAllowed ? `${hostKey(host)} ${port}` : hostKey(host));
  const own = new Set(urls.map((text) => new URL(text)).map((url) => keyOf(hostOf(url), portOf(url))));
  return ({ host, port }) => own.has(keyOf(host, port));
}
