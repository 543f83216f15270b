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

/** Returns the path of a target, still percent-encoded. */
export function pathOf(target: string): string {
  return target.split(/[?#]/, 1)[0] ?? '';
}
