/**
 * Which proxy a request goes through, by the variables that curl and git obey: `https_proxy`, `http_proxy`, `all_proxy`
 * and `no_proxy`, in either case.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the proxy's address, or null for a direct connection. */
export function proxyFor(url: URL, environment: Environment): URL | null {
  const variable = (name: string): string => environment[name] ?? environment[name.toUpperCase()] ?? '';
  if (isExcluded(url, variable('no_proxy'))) return null;
  const named = variable(url.protocol === 'https:' ? 'https_proxy' : 'http_proxy') || variable('all_proxy');
  if (named === '') return null;
  const text = named.includes('://') ? named : `http://${named}`;
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? new URL(text) : null;
}

/** Whether `no_proxy` names the host: by itself, by a domain that it is in, with or without a port, or by `*`. */
function isExcluded(url: URL, list: string): boolean {
  const host = bare(url.hostname);
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false;
    if (entry === '*') return true;
    const [, name = '', wanted] = /^\*?\.?(\[[^\]]*\]|[^:]*|[^[]*:[^[]*:[^[]*?)(?::(\d+))?$/.exec(entry) ?? [];
    if (name === '' || (wanted !== undefined && wanted !== port)) return false;
    const domain = bare(name);
    return host === domain || host.endsWith(`.${domain}`);
  });
}

const bare = (host: string): string => host.replaceAll(/^\[|\]$/g, '').toLowerCase();

/** The header by which a proxy knows its user; none without a name in its address. */
export function proxyHeaders({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
