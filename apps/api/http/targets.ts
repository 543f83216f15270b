/**
 * Request targets: what the router is given, and what a target that met no route answers.
 *
 * Must stay true: a target is routed in the form it was sent; nothing here makes two targets equal.
 */
import { type Answer, problem } from './answer.ts';

export const NOT_FOUND = problem(404, 'Not found');

/**
 * The target as the router takes it. One that is no absolute path names nothing here. In one that is not UTF-8
 * once decoded the escapes are kept as they are: names of files need not be UTF-8, and their handler reads the
 * target as it was sent.
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

/** The path of a target, still encoded. */
export function pathOf(target: string): string {
  return target.split(/[?#]/, 1)[0] ?? '';
}

/** A path of the table in the router's words. */
export function routerPath(path: string): string {
  return path.replace(/\{path\}$/, '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

export interface PathMethod {
  readonly method: string;
  readonly path: string;
  readonly unlisted?: true;
}

/** Whether HEAD is answered as GET is. */
export function hasHead({ method, unlisted }: PathMethod): boolean {
  return method === 'GET' && unlisted !== true;
}

/** What a target that met no route answers: 405 with the methods there are where its path is one of ours, else 404. */
export function createUnmatched(routes: readonly PathMethod[]): (target: string) => Answer {
  const patterns = routes.map((route) => {
    const methods = hasHead(route) ? [route.method, 'HEAD'] : [route.method];
    return { methods, pattern: patternOf(route.path) };
  });
  return (target) => {
    const path = pathOf(target);
    const allowed = patterns.flatMap(({ methods, pattern }) => (pattern.test(path) ? methods : []));
    if (allowed.length === 0) return NOT_FOUND;
    return problem(405, 'Method not allowed', { allow: allowed.join(', ') });
  };
}

function patternOf(path: string): RegExp {
  const literals = path.split(/\{\w+\}/).map((literal) => literal.replaceAll('.', '\\.'));
  const last = path.endsWith('{path}') ? '.*' : null;
  const joined = literals.reduce((pattern, literal, index) => {
    const isLast = index === literals.length - 1;
    return `${pattern}${isLast && last !== null ? last : '[^/]+'}${literal}`;
  });
  return new RegExp(`^${joined}$`);
}
