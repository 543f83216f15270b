/**
 * The address that a request came from, and the vault reference to it that events hold.
 *
 * Must stay true: X-Forwarded-For counts only from peers that `STRATA_TRUSTED_PROXIES` names, and is read from the
 * right to the first address that is not trusted. A push from a known address writes no vault record.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { AccountId } from '../../core/kernel/ids.ts';
import { type Vault, VaultError } from '../../core/ports/vault.ts';

const REFERENCES_MAX = 50_000;
/** The vault is called again after this, so that the sweep never takes a record in use for an unreferenced one. */
const REFERENCE_SPAN_MS = 30 * 60_000;

export type ClientAddress = (request: IncomingMessage) => string;

/** Entries are addresses or CIDR ranges. Throws TypeError on any other entry. */
export function createClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const isTrusted = within(trustedProxies);
  return (request) => {
    const peer = plainAddress(request.socket.remoteAddress ?? '');
    const header = request.headers['x-forwarded-for'];
    if (header === undefined || !isTrusted(peer)) return peer;
    const hops = (Array.isArray(header) ? header.join(',') : header).split(',').map((hop) => plainAddress(hop.trim()));
    for (const hop of hops.toReversed()) {
      if (isIP(hop) === 0) return peer;
      if (!isTrusted(hop)) return hop;
    }
    return peer;
  };
}

const LOOPBACK = ['127.0.0.0/8', '::1'];

/** Returns a function that is true for addresses of this machine and of trusted proxies. */
export function createOwnAddress(trustedProxies: readonly string[]): (address: string) => boolean {
  return within([...LOOPBACK, ...trustedProxies]);
}

function within(entries: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const version = isIP(address);
    const bits = prefix === undefined ? (version === 6 ? 128 : 32) : Number(prefix);
    if (version === 0 || !Number.isInteger(bits)) throw new TypeError(`STRATA_TRUSTED_PROXIES: ${entry} is no address`);
    trusted.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4');
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

/** Returns the IPv4 address of an IPv4-mapped IPv6 address, any other address unchanged. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/** Caches references, so that the vault is called once in half an hour for each account and address. */
export function createSourceAddressRef(vault: Vault): (account: AccountId, address: string) => Promise<string | null> {
  const known = new LRUCache<string, Promise<string | null>>({ max: REFERENCES_MAX, ttl: REFERENCE_SPAN_MS });
  return async (account, address) => {
    if (address === '') return null;
    const key = `${account} ${address}`;
    let ref = known.get(key);
    if (ref === undefined) {
      ref = vault.put(account, 'source-address', address).catch(unlessErased);
      known.set(key, ref);
      ref.catch(() => known.delete(key));
    }
    return ref;
  };
}

/** An account may be erased while its request runs: the append is then refused, and the address need not be stored. */
function unlessErased(cause: unknown): null {
  if (cause instanceof VaultError && cause.code === 'account-erased') return null;
  throw cause;
}
