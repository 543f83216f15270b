/**
 * Who may read `/metrics`: peers on loopback, and those of `STRATA_METRICS_PEERS`.
 *
 * Invariants: of a request through a trusted proxy its client counts, never the proxy, which may be on loopback
 * itself. A request that shows by its headers that it came through some other proxy is refused, since its client is not
 * known. What cannot be read is refused.
 */
import type { IncomingMessage } from 'node:http';
import { hopsOf } from './forwarded-hops.ts';
import { createAddressList, type Proxies, peerOf } from './source-address.ts';

const LOOPBACK = ['127.0.0.0/8', '::1'];
/** RFC 7239, and what proxies sent before it. */
const FORWARDING = /^(forwarded|x-forwarded(-.*)?|x-real-ip)$/;

/** Entries of both lists are addresses or CIDR ranges. Throws TypeError on any other entry. */
export function createMetricsPeers({
  metricsPeers,
  trustedProxies,
  forwardedHeader,
}: Proxies & { readonly metricsPeers: readonly string[] }): (request: IncomingMessage) => boolean {
  const isPeer = createAddressList('STRATA_METRICS_PEERS', [...LOOPBACK, ...metricsPeers]);
  const isTrusted = createAddressList('STRATA_TRUSTED_PROXIES', trustedProxies);
  return (request) => {
    const peer = peerOf(request);
    if (!Object.keys(request.headers).some((name) => FORWARDING.test(name))) return isPeer(peer);
    if (!isTrusted(peer)) return false;
    const hops = [...(hopsOf(request, forwardedHeader) ?? [])];
    const addresses = hops.flatMap((hop) => (hop.kind === 'address' ? hop.address : []));
    if (addresses.length < hops.length) return false;
    // Where all hops are trusted proxies, the first one is the client. Without a hop nobody is.
    const client = addresses.find((address) => !isTrusted(address)) ?? addresses.at(-1) ?? '';
    return isPeer(client);
  };
}
