/**
 * Decides which addresses are public, and which names can be of the public DNS. No other file does.
 *
 * Invariants: an address is public only if ipaddr.js calls it unicast and no range below holds it; text that is not
 * strictly an address is not public. An IPv4 address inside an IPv6 one, mapped or by NAT64, is judged as IPv4.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { asciiLowerCase } from '../../core/kernel/text.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** All of IANA's special-purpose registry for IPv4, and an address that is a host inside one cloud only. */
const FORBIDDEN_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's host for metadata, DNS and health probes. It is in public space, so ipaddr.js cannot know it.
  '168.63.129.16/32',
].map((range) => ipaddr.IPv4.parseCIDR(range));

/** The only space assigned as global unicast (RFC 4291, section 2.4): `::/96`, link-local and the like are outside. */
const GLOBAL_IPV6 = ipaddr.IPv6.parseCIDR('2000::/3');

/** Special ranges within the global space: IANA's special-purpose registry for IPv6. */
const FORBIDDEN_IPV6 = [
  // Protocol assignments, Teredo (2001::/32) among them.
  '2001::/23',
  '2001:db8::/32',
  // 6to4: holds an IPv4 address, which was reached by relays that nobody runs any more (RFC 7526).
  '2002::/16',
  '2620:4f:8000::/48',
  // The 6bone, given back in 2006 (RFC 3701): who routes it today is nobody on the Internet.
  '3ffe::/16',
  '3fff::/20',
].map((range) => ipaddr.IPv6.parseCIDR(range));

/**
 * Whether the interface identifier is that of ISATAP (RFC 5214, section 6.1), in any network: `0:5efe` or `200:5efe`,
 * with the bits for universal and group either way, before an IPv4 address to which a router of that network would
 * tunnel.
 */
function isIsatap(address: ipaddr.IPv6): boolean {
  const [, , , , identifier = 0, next] = address.parts;
  return (identifier & 0xfcff) === 0 && next === 0x5efe;
}

/** NAT64 (RFC 6052): where a network has only IPv6, every IPv4 receiver has such an address. */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/** Whether an address, in the text form of name servers and sockets, is public unicast. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text);
  return address !== null && isPublic(address);
}

/** Returns one text for each address: unmapped, in lower case, without a zone. Null for text that is no address. */
export function canonicalAddress(text: string): string | null {
  const address = parseAddress(text);
  if (address === null) return null;
  return address instanceof ipaddr.IPv4 ? address.toString() : ipaddr.fromByteArray(address.toByteArray()).toString();
}

/** Parses an address. One mapped into IPv6 (`::ffff:0:0/96`) becomes IPv4. Unlike ipaddr.js, this refuses `0x7f.1`. */
function parseAddress(text: string): Address | null {
  const family = isIP(text);
  if (family === 0) return null;
  return ipaddr.process(family === 4 ? text : hexGroups(text));
}

/** Rewrites a dotted tail as hex: ipaddr.js takes `::127.0.0.1` for a mapped address, which it is not. */
function hexGroups(ipv6: string): string {
  return new URL(`http://[${ipv6.replace(/%.*/, '')}]/`).hostname.slice(1, -1);
}

function isPublic(address: Address): boolean {
  if (address instanceof ipaddr.IPv4) {
    return address.range() === 'unicast' && !FORBIDDEN_IPV4.some((range) => address.match(range));
  }
  if (address.match(NAT64)) return isPublic(new ipaddr.IPv4(address.toByteArray().slice(12)));
  const isGlobal = address.range() === 'unicast' && address.match(GLOBAL_IPV6);
  return isGlobal && !isIsatap(address) && !FORBIDDEN_IPV6.some((range) => address.match(range));
}

/**
 * Names of a machine or a network's own: `.internal` (ICANN, 2024), multicast DNS (RFC 6762), and what hosts files say.
 */
const PRIVATE_SUFFIXES = ['internal', 'local', 'localdomain', 'localhost'];

/**
 * Whether a host name can be one of the public DNS. A name of one label (`metadata`) means what the search list or the
 * hosts file of this machine makes of it. An empty label (`.`, `a..b`) is no name.
 */
export function isPublicName(host: string): boolean {
  const labels = asciiLowerCase(host).replace(/\.$/, '').split('.');
  const last = labels.at(-1) ?? '';
  return labels.length > 1 && !labels.includes('') && !PRIVATE_SUFFIXES.includes(last);
}
