/** The counts of a limit by the address that a request came from (core/kernel/network.ts). */
import { isIpv6, networkOf, wideNetworkOf } from '../../kernel/network.ts';
import type { RateCount, RateLimit } from '../../ports/rate-limits.ts';

export interface NetworkLimits {
  /** The count of an IPv4 address, or a /64 of IPv6. */
  readonly network: RateLimit;
  /** The count of a /48 of IPv6, whose networks one customer may hold. */
  readonly wide: RateLimit;
}

export function networkCounts({ network, wide }: NetworkLimits, address: string): readonly RateCount[] {
  const count = { limit: network, key: networkOf(address) };
  return isIpv6(address) ? [count, { limit: wide, key: wideNetworkOf(address) }] : [count];
}
