/**
 * Which proxy a request goes through, by the variables that curl and git obey: `https_proxy`, `http_proxy`, `all_proxy`
 * and `no_proxy`, in either case.
 *
 * Invariants: a request never goes past a proxy that is named and cannot be used, since the network may be watched or
 * closed for a reason: that is an error. No message quotes the user or the password of a proxy.
 */
import { BlockList, isIP } from 'node:net';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A variable names a proxy that cannot be used. The message names the variable and not its value. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
}

/** Returns the proxy's address, or null for a direct connection. */
export function proxyFor(url: URL, environment: Environment): URL | null {
  const variable = (name: string): readonly [name: string, value: string] => {
    const lower = environment[name];
    return lower === undefined ? [name.toUpperCase(), environment[name.toUpperCase()] ?? ''] : [name, lower];
  };
  if (isExcluded(url, variable('no_proxy')[1])) return null;
  const [own, all] = [variable(url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'), variable('all_proxy')];
  const [name, named] = own[1] === '' ? all : own;
  if (named.trim() === '') return null;
  const text = named.includes('://') ? named.trim() : `http://${named.trim()}`;
  if (!URL.canParse(text)) {
    throw new ProxyError(`${name} is no address of a proxy; in its user and password write / as %2F, # as %23`);
  }
  const proxy = new URL(text);
  if (/^https?:$/.test(proxy.protocol)) return proxy;
  throw new ProxyError(
    `${name} names a proxy of the kind ${proxy.protocol.slice(0, -1)}; strata goes through http and https proxies only: name one, or the service in NO_PROXY`,
  );
}

/**
 * Whether `no_proxy` names the host: by itself, by a domain or (curl 7.86, Go) a range of addresses that it is in, with
 * or without a port, or by `*`.
 */
function isExcluded(url: URL, list: string): boolean {
  const host = bare(url.hostname);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false;
    if (entry === '*') return true;
    if (entry.includes('/')) return isInRange(host, entry);
    const [, name = '', wanted] = /^\*?\.?(\[[^\]]*\]|[^:]*|[^[]*:[^[]*:[^[]*?)(?::(\d+))?$/.exec(entry) ?? [];
    if (name === '' || (wanted !== undefined && wanted !== port)) return false;
    const domain = bare(name);
    return host === domain || host.endsWith(`.${domain}`);
  });
}

/** `10.0.0.0/8` or `fd00::/8`; any other text with a slash holds no host. */
function isInRange(host: string, range: string): boolean {
  const [, network = '', digits = ''] = /^\[?([^[\]/]+)\]?\/(\d{1,3})$/.exec(range) ?? [];
  const [hostFamily, family] = [isIP(host), isIP(network)];
  const length = Number(digits);
  if (hostFamily === 0 || family === 0 || length > (family === 4 ? 32 : 128)) return false;
  const list = new BlockList();
  list.addSubnet(network, length, family === 4 ? 'ipv4' : 'ipv6');
  return list.check(host, hostFamily === 4 ? 'ipv4' : 'ipv6');
}

const bare = (host: string): string => host.replaceAll(/^\[|\]$/g, '').toLowerCase();

/** The header by which a proxy knows its user; none without a name in its address. */
export function proxyHeaders({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const pair = Buffer.from(`${decoded(username)}:${decoded(password)}`, 'latin1');
  return { 'proxy-authorization': `Basic ${pair.toString('base64')}` };
}

/** Decodes as curl does: a `%` that begins no pair of hex digits stands for itself. A parsed URL is ASCII. */
function decoded(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_pair, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
