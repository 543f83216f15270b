/**
 * Request targets in the form that the routers of the API and the website take.
 *
 * Invariants: a target is routed as the client sent it; nothing here maps two targets to one.
 */

/**
 * Returns the target for the router. A target that is not an absolute path becomes `/`, which has no route. If its path
 * does not decode to UTF-8, the escapes are escaped themselves: file names need not be UTF-8, and the contents
 * handler parses the original target.
 */
export function routableTarget(target: string): string {
  if (!target.startsWith('/')) return '/';
  if (!target.includes('%')) return target;
  const path = pathOf(target);
  try {
    decodeURIComponent(path);
    return target;
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    return path.replaceAll('%', '%25') + target.slice(path.length);
  }
}

/** Percent-encodes every byte that is not unreserved: RFC 3986, section 2.3. */
export function encodeName(name: Uint8Array): string {
  return Buffer.from(name.buffer, name.byteOffset, name.length)
    .toString('latin1')
    .replaceAll(/[^A-Za-z0-9._~-]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}

/** Percent-encodes a path byte by byte; its slashes stay. */
export function encodePath(path: Uint8Array): string {
  return encodeName(path).replaceAll('%2F', '/');
}

/** Returns the query of a target, still percent-encoded and without its question mark. */
export function queryOf(target: string): string {
  return target.split('#', 1)[0]?.slice(pathOf(target).length + 1) ?? '';
}

/** Returns the path of a target, still percent-encoded. */
export function pathOf(target: string): string {
  return target.split(/[?#]/, 1)[0] ?? '';
}
