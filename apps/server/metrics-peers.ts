/**
 * Who may read `/metrics`: peers on loopback, and those of `STRATA_METRICS_PEERS`.
 *
 * Invariants: of a request through a trusted proxy its client counts, never the proxy, which may be on loopback
 * itself. A request that shows by its headers that it came through some other proxy is refused, since its client is not
 * known. What cannot be read is refused.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { createAddressList, hopsOf, peerOf } from './source-address.ts';

const LOOPBACK = ['127.0.0.0/8', '::1'];
/** RFC 7239, and what proxies sent before it. */
const FORWARDING = /^(forwarded|x-forwarded(-.*)?|x-real-ip)$/;

/** Entries of both lists are addresses or CIDR ranges. Throws TypeError on any other entry. */
export function createMetricsPeers(options: {
  readonly metricsPeers: readonly string[];
  readonly trustedProxies: readonly string[];
}): (request: IncomingMessage) => boolean {
  const isPeer = createAddressList('STRATA_METRICS_PEERS', [...LOOPBACK, ...options.metricsPeers]);
  const isTrusted = createAddressList('STRATA_TRUSTED_PROXIES', options.trustedProxies);
  return (request) => {
    const peer = peerOf(request);
    if (!Object.keys(request.headers).some((name) => FORWARDING.test(name))) return isPeer(peer);
    const header = request.headers['x-forwarded-for'];
    if (header === undefined || !isTrusted(peer)) return false;
    const hops = hopsOf(header);
    if (!hops.every((hop) => isIP(hop) !== 0)) return false;
    // Where all hops are trusted proxies, the first one is the client.
    const client = hops.findLast((hop) => !isTrusted(hop)) ?? hops[0] ?? '';
    return isPeer(client);
  };
}
