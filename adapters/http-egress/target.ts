/**
 * Parses the text of a URL into the host and port to connect to, or the reason to refuse it.
 *
 * Invariants: a text that two parsers could read as different hosts is refused; the host is the one that the WHATWG
 * parser returns, so that decimal, octal, short, encoded and full-width notations of an address become that address.
 */
import { isIP } from 'node:net';
import { OUTGOING_URL_LENGTH_MAX } from '../../core/kernel/limits.ts';
import type { TargetFault } from '../../core/kernel/target-fault.ts';
import { canonicalAddress } from './addresses.ts';

export interface Target {
  /** `https://host:port`, or `http` where that is allowed; without user information. */
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly isAddress: boolean;
  readonly isSecure: boolean;
  readonly port: number;
}

const HTTPS_PORT = 443;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': HTTPS_PORT };
/** Spaces and control characters, which parsers drop, and `\`, which some parsers read as `/`. */
const AMBIGUOUS = /[\p{Cc}\p{Z}\\]/u;
const USER_INFORMATION = /^https?:\/\/[^/?#]*@/i;

export function parseTarget(text: string, httpAllowed = false): Target | { readonly fault: TargetFault } {
  if (text.length > OUTGOING_URL_LENGTH_MAX) return { fault: 'url-too-long' };
  if (AMBIGUOUS.test(text) || !URL.canParse(text)) return { fault: 'url-malformed' };
  const url = new URL(text);
  const isSecure = url.protocol === 'https:';
  if (!isSecure && !(httpAllowed && url.protocol === 'http:')) return { fault: 'url-not-https' };
  // The parser also accepts `https:host` and `https:///host`.
  if (!/^https?:\/\/[^/]/i.test(text)) return { fault: 'url-malformed' };
  if (USER_INFORMATION.test(text)) return { fault: 'url-with-credentials' };
  const port = portOf(url);
  // No server can listen on port 0.
  if (port === 0) return { fault: 'url-malformed' };
  const host = hostOf(url);
  return { origin: url.origin, path: url.pathname + url.search, host, isAddress: isIP(host) !== 0, isSecure, port };
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

function portOf(url: URL): number {
  return url.port === '' ? (DEFAULT_PORTS[url.protocol] ?? HTTPS_PORT) : Number(url.port);
}

/** A canonical form of a host: the keys of equal hosts are equal. */
function hostKey(host: string): string {
  return canonicalAddress(host) ?? host.toLowerCase().replace(/\.$/, '');
}

/**
 * Returns a function that decides whether a target is this service itself: a host of its own URLs, on any port. Where
 * private targets are allowed, a receiver may run on the same host, so the port must be equal, too.
 */
export function createOwnHosts(urls: readonly string[], privateAllowed: boolean): (target: Target) => boolean {
  const keyOf = (host: string, port: number): string => (privateAllowed ? `${hostKey(host)} ${port}` : hostKey(host));
  const own = new Set(urls.map((text) => new URL(text)).map((url) => keyOf(hostOf(url), portOf(url))));
  return ({ host, port }) => own.has(keyOf(host, port));
}
