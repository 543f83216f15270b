/**
 * Outgoing requests (core/ports/outgoing-requests.ts) by undici: applies the rules of SECURITY.md in their order.
 *
 * Must stay true: the same function checks a URL when it is saved and at every attempt; every address of a name is
 * checked, one forbidden address refuses the name, and the connection uses only checked addresses.
 */
import { networkInterfaces } from 'node:os';
import { TARGET_CHECK_SPAN_MS } from '../../core/kernel/limits.ts';
import type { Exchange, OutgoingRequest, OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { TargetFault } from '../../core/kernel/target-fault.ts';
import { canonicalAddress, isPublicAddress } from './addresses.ts';
import { type Dial, dial, openConnection } from './connection.ts';
import { exchange } from './exchange.ts';
import { failed } from './failures.ts';
import { createNameLookup, type Lookup, type NameLookup } from './name-lookup.ts';
import { createOwnHosts, parseTarget, type Target } from './target.ts';

export interface HttpEgressOptions {
  /** The URLs at which clients reach this service. */
  readonly ownUrls: readonly string[];
  /** Lifts the rules about addresses; HTTPS and the other rules still apply. */
  readonly privateAllowed: boolean;
  /** Certificate authorities in PEM; when absent, Node's and those of NODE_EXTRA_CA_CERTS. */
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

  async function faultOf(url: string): Promise<TargetFault | null> {
    const checked = await withTimeout(TARGET_CHECK_SPAN_MS, (signal) => check(url, signal));
    return checked !== TIMED_OUT && 'fault' in checked ? checked.fault : null;
  }

  return {
    check: faultOf,
    checkEndpoint: (url) => faultOf(privateAllowed ? asIfEncrypted(url) : url),
    async send(request) {
      const ended = await withTimeout(request.spanMs, (signal) => send(request, signal), request.signal);
      return ended === TIMED_OUT ? failed('timed-out') : ended;
    },
  };
}

/** Returns the same host and port with `https://`, so that every rule but that of the scheme is checked. */
function asIfEncrypted(url: string): string {
  const [, origin, port = ':80'] = /^http:(\/\/[^/?#]*?)(:\d+)?\/?$/i.exec(url) ?? [];
  return origin === undefined ? url : `https:${origin}${port}`;
}

function addressFault(addresses: readonly string[], ownAddresses: readonly string[]): TargetFault | null {
  if (!addresses.every(isPublicAddress)) return 'address-not-public';
  const own = new Set(ownAddresses.map(canonicalAddress));
  return addresses.some((address) => own.has(canonicalAddress(address))) ? 'own-host' : null;
}

function addressesOfThisMachine(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
}

const TIMED_OUT = Symbol('timed out');

/** Resolves with the work's result, or `TIMED_OUT` when it rejects after the time was up or the caller cancelled it. */
async function withTimeout<Result>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<Result>,
  cancelled?: Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>,
): Promise<Result | typeof TIMED_OUT> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  cancelled?.addEventListener('abort', abort, { once: true });
  if (cancelled?.aborted === true) abort();
  try {
    return await work(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) return TIMED_OUT;
    throw error;
  } finally {
    clearTimeout(timer);
    cancelled?.removeEventListener('abort', abort);
  }
}
