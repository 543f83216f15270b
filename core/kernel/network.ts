/**
 * The networks of an address, under which limits count its requests.
 *
 * Invariants: every address of a network gives the same text. A host of IPv6 has a whole /64 for itself, and one
 * customer may hold a /48 of those (RFC 6177). So what counts by `networkOf` counts by `wideNetworkOf` too, with a
 * larger limit, else one person has any number of counts. A limit by the /48 alone would let one customer of a data
 * centre shut its neighbours out.
 */

/** Returns an IPv4 address unchanged, and the /64 network of an IPv6 address. */
export function networkOf(address: string): string {
  return isIpv6(address) ? ipv6Network(address, 4) : address;
}

/** Returns the /24 network of an IPv4 address, and the /48 network of an IPv6 address. */
export function wideNetworkOf(address: string): string {
  if (isIpv6(address)) return ipv6Network(address, 3);
  const end = address.lastIndexOf('.');
  return end === -1 ? address : `${address.slice(0, end)}.0/24`;
}

export function isIpv6(address: string): boolean {
  return address.includes(':');
}

function ipv6Network(address: string, groups: number): string {
  const [head = '', tail = null] = (address.split('%', 1)[0] ?? '').split('::');
  const first = groupsOf(head);
  const last = tail === null ? [] : groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0');
  const whole = [...first, ...zeros, ...last];
  const network = whole.slice(0, groups).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/${groups * 16}`;
}

function groupsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(':');
}
