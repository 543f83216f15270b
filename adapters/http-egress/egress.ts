/**
 * Outgoing requests (core/ports/outgoing-requests.ts) by undici: the rules of security.md in the order they apply.
 *
 * Must stay true: what is checked when a URL is saved is what is checked at every attempt, by the same function; every
 * address of a name is checked, one bad address refuses the name, and the connection goes to what was checked.
 */
import { networkInterfaces } from 'node:os';
import { TARGET_CHECK_SPAN_MS } from '../../core/kernel/limits.ts';
import type { Exchange, OutgoingRequest, OutgoingRequests, TargetFault } from '../../core/ports/outgoing-requests.ts';
import { canonicalAddress, isPublicAddress } from './addresses.ts';
import { type Dial, dial, openConnection } from './connection.ts';
import { exchange } from './exchange.ts';
import { failed } from './failures.ts';
import { createNameLookup, type Lookup, type NameLookup } from './name-lookup.ts';
import { createOwnHosts, parseTarget, type Target } from './target.ts';

export interface HttpEgressOptions {
  /** The URLs this service is reached at. */
  readonly ownUrls: readonly string[];
  /** Lifts the rules about addresses; HTTPS and the rest stay. */
  readonly privateAllowed: boolean;
  /** Certificate authorities in PEM; absent: Node's, with those of NODE_EXTRA_CA_CERTS. */
  readonly authorities?: readonly string[];
  readonly lookup?: NameLookup;
  readonly dial?: Dial;
  /** Addresses of this machine, which no target may have. */
  readonly ownAddresses?: () => readonly string[];
}

/** A target and all its addresses, each of them allowed. */
interface CheckedTarget {
  readonly target: Target;
  readonly addresses: readonly string[];
}

type Unresolved = Extract<Lookup, { unresolved: string }>;

export function createHttpEgress(options: HttpEgressOptions): OutgoingRequests {
  const { privateAllowed, authorities, lookup = createNameLookup(), ownAddresses = addressesOfThisMachine } = options;
  const isOwnHost = createOwnHosts(options.ownUrls, privateAllowed);

  async function check(
    url: string,
    signal: AbortSignal,
  ): Promise<CheckedTarget | Unresolved | { readonly fault: TargetFault }> {
    const target = parseTarget(url);
    if ('fault' in target) return target;
    if (isOwnHost(target)) return { fault: 'own-host' };
    const found = target.isAddress ? { addresses: [target.host] } : await lookup(target.host, signal);
    if ('unresolved' in found) return found;
    const fault = privateAllowed ? null : addressFault(found.addresses, ownAddresses());
    return fault === null ? { target, addresses: found.addresses } : { fault };
  }

  async function send(request: OutgoingRequest, signal: AbortSignal): Promise<Exchange> {
    const checked = await check(request.url, signal);
    if ('fault' in checked) return { outcome: 'refused', fault: checked.fault };
    if ('unresolved' in checked) return failed(checked.unresolved, checked.detail);
    const connection = await openConnection({ ...checked, dial: options.dial ?? dial, authorities, signal });
    return 'outcome' in connection ? connection : exchange(connection, checked.target, request, signal);
  }

  return {
    async check(url) {
      const checked = await within(TARGET_CHECK_SPAN_MS, (signal) => check(url, signal));
      return checked !== LATE && 'fault' in checked ? checked.fault : null;
    },
    async send(request) {
      const ended = await within(request.spanMs, (signal) => send(request, signal));
      return ended === LATE ? failed('timed-out') : ended;
    },
  };
}

function addressFault(addresses: readonly string[], ownAddresses: readonly string[]): TargetFault | null {
  if (!addresses.every(isPublicAddress)) return 'address-not-public';
  const own = new Set(ownAddresses.map(canonicalAddress));
  return addresses.some((address) => own.has(canonicalAddress(address))) ? 'own-host' : null;
}

function addressesOfThisMachine(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
}

const LATE = Symbol('late');

/** What the work gives, or `LATE` when it was told that its time is up. */
async function within<Result>(
  spanMs: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | typeof LATE> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), spanMs);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) return LATE;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
