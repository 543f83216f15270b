/**
 * The name by which lines of the log group requests of one source, without its address.
 *
 * Invariants: whoever reads the log cannot tell the address, and cannot try addresses without the key. A source is
 * what limits count by: an IPv4 address, or the /64 network of an IPv6 address.
 */
import { createHmac } from 'node:crypto';
import { networkOf } from '../../core/kernel/network.ts';

const DIGITS = 16;

/** Returns 16 hex digits of the HMAC-SHA-256 of the source under the key. */
export function sourceName(key: string, address: string): string {
  return createHmac('sha256', key).update(networkOf(address), 'utf8').digest('hex').slice(0, DIGITS);
}
