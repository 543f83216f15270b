/**
 * Decides whether a URL may be a target now, and at which addresses it is reached.
 *
 * Invariants: every address of a name is checked, and one forbidden address refuses the name. A name of this
 * machine or its network is refused by itself, whatever a name server answers.
 */
import { networkInterfaces } from 'node:os';
import type { TargetFault } from '../../core/kernel/target-fault.ts';
import { canonicalAddress, isPublicAddress, isPublicName } from './addresses.ts';
import { createNameLookup, type Lookup, type NameLookup } from './name-lookup.ts';
import { createOwnHosts, parseTarget, type Target } from './target.ts';

export interface TargetCheckOptions {
  /** The URLs at which clients reach this service. */
  readonly ownUrls: readonly string[];
  /** Lifts the rules about addresses and names; HTTPS and the other rules still apply. */
  readonly privateAllowed: boolean;
  /** Whether a target may be plain http too. */
  readonly httpAllowed?: boolean;
  readonly lookup?: NameLookup;
  /** Addresses of this machine, which no target may have. */
  readonly ownAddresses?: () => readonly string[];
}

/** A target and all its addresses, each of them allowed. */
export interface CheckedTarget {
  readonly target: Target;
  readonly addresses: readonly string[];
}

type Unresolved = Extract<Lookup, { unresolved: string }>;

/** Rejects only with the signal's reason. */
export type TargetCheck = (
  url: string,
  signal: AbortSignal,
) => Promise<CheckedTarget | Unresolved | { readonly fault: TargetFault }>;

export function createTargetCheck(options: TargetCheckOptions): TargetCheck {
  const { privateAllowed, httpAllowed = false } = options;
  const { lookup = createNameLookup(), ownAddresses = addressesOfThisMachine } = options;
  const isOwnHost = createOwnHosts(options.ownUrls, privateAllowed);
  return async (url, signal) => {
    const target = parseTarget(url, httpAllowed);
    if ('fault' in target) return target;
    if (isOwnHost(target)) return { fault: 'own-host' };
    if (!privateAllowed && !target.isAddress && !isPublicName(target.host)) return { fault: 'address-not-public' };
    const found = target.isAddress ? { addresses: [target.host] } : await lookup(target.host, signal);
    if ('unresolved' in found) return found;
    const fault = privateAllowed ? null : addressFault(found.addresses, ownAddresses());
    return fault === null ? { target, addresses: found.addresses } : { fault };
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
