/**
 * The network of an address, under which rate limits count its requests.
 *
 * Must stay true: every address of a network gives the same text. One customer may hold a whole /48 of IPv6 (RFC 6177),
 * so a smaller network would give one person any number of counts.
 */

/** Returns an IPv4 address unchanged, and the /48 network of an IPv6 address. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail = null] = (address.split('%', 1)[0] ?? '').split('::');
  const first = groupsOf(head);
  const last = tail === null ? [] : groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0');
  const network = [...first, ...zeros, ...last].slice(0, 3).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(':')}::/48`;
}

function groupsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(':');
}
