/**
 * The address that a request came from, and the vault reference to it that events hold.
 *
 * Invariants: the header of `STRATA_FORWARDED_HEADER` counts only from peers that `STRATA_TRUSTED_PROXIES` names, and
 * is read from the right to the first address that is not trusted. A push from a known address writes no vault record.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { AccountId } from '../../core/kernel/ids.ts';
import { countedCache, entriesAtMost } from '../../core/kernel/shown-caches.ts';
import { type Vault, VaultError } from '../../core/ports/vault.ts';
import { type ForwardedHeader, hopsOf, plainAddress } from './forwarded-hops.ts';

/** References that are kept. Internal: the address behind a forgotten one is stored again. */
const REFERENCES_MAX = 50_000;
/** The vault is called again after this, so that the sweep never takes a record in use for an unreferenced one. */
const REFERENCE_SPAN_MS = 30 * 60_000;

export type ClientAddress = (request: IncomingMessage) => string;

export interface Proxies {
  /** Addresses or CIDR ranges. Any other entry throws TypeError. */
  readonly trustedProxies: readonly string[];
  readonly forwardedHeader: ForwardedHeader;
}

/**
 * Where no proxy names the client, the peer counts as the client. `onUnreadable` is called once, when a proxy sent what
 * nobody can read: all of its clients then share the limits of one.
 */
export function createClientAddress(
  { trustedProxies, forwardedHeader }: Proxies,
  onUnreadable: () => void = () => undefined,
): ClientAddress {
  const isTrusted = createAddressList('STRATA_TRUSTED_PROXIES', trustedProxies);
  let isTold = false;
  return (request) => {
    const peer = peerOf(request);
    if (!isTrusted(peer)) return peer;
    for (const hop of hopsOf(request, forwardedHeader) ?? []) {
      if (hop.kind === 'unreadable' && !isTold) {
        isTold = true;
        onUnreadable();
      }
      if (hop.kind !== 'address') return peer;
      if (!isTrusted(hop.address)) return hop.address;
    }
    return peer;
  };
}

const LOOPBACK = ['127.0.0.0/8', '::1'];

/** Returns a function that is true for addresses of this machine and of trusted proxies. */
export function createOwnAddress(trustedProxies: readonly string[]): (address: string) => boolean {
  return createAddressList('STRATA_TRUSTED_PROXIES', [...LOOPBACK, ...trustedProxies]);
}

/**
 * Returns whether an address is in the list. Entries are addresses or CIDR ranges; any other one throws TypeError with
 * the setting's name.
 */
export function createAddressList(setting: string, entries: readonly string[]): (address: string) => boolean {
  const listed = new BlockList();
  for (const entry of entries) {
    const [address = '', prefix] = entry.split('/');
    const version = isIP(address);
    const bitsMax = version === 6 ? 128 : 32;
    const bits = prefix === undefined ? bitsMax : /^\d{1,3}$/.test(prefix) ? Number(prefix) : -1;
    if (version === 0 || bits < 0 || bits > bitsMax) throw new TypeError(`${setting}: ${entry} is no address`);
    listed.addSubnet(address, bits, version === 6 ? 'ipv6' : 'ipv4');
  }
  // A list costs some microseconds a look, and most services have no proxy to look for.
  if (entries.length === 0) return () => false;
  return (address) => {
    const version = isIP(address);
    return version !== 0 && listed.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

/** Returns the address that the connection comes from; empty once it is closed. */
export function peerOf(request: IncomingMessage): string {
  return plainAddress(request.socket.remoteAddress ?? '');
}

/** Caches references, so that the vault is called once in half an hour for each account and address. */
export function createSourceAddressRef(vault: Vault): (account: AccountId, address: string) => Promise<string | null> {
  const known = countedCache(
    'source_addresses',
    'entries',
    new LRUCache<string, Promise<string | null>>({ ...entriesAtMost(REFERENCES_MAX), ttl: REFERENCE_SPAN_MS }),
  );
  return async (account, address) => {
    if (address === '') return null;
    const key = `${account} ${address}`;
    let ref = known.get(key);
    if (ref === undefined) {
      ref = sourceAddressRef(vault, account, address);
      known.set(key, ref);
      ref.catch(() => known.delete(key));
    }
    return ref;
  };
}

/** Stores the address of one request or command; null if the account is erased. */
export function sourceAddressRef(vault: Vault, account: AccountId, address: string): Promise<string | null> {
  return vault.put(account, 'source-address', address).catch(unlessErased);
}

/** An account may be erased while its request runs: the append is then refused, and the address need not be stored. */
function unlessErased(cause: unknown): null {
  if (cause instanceof VaultError && cause.code === 'account-erased') return null;
  throw cause;
}
