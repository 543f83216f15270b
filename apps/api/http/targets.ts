/** The paths of the table of routes as the router takes them, and the answer to a target that matches no route. */
import { pathOf } from '../../front-door/request-target.ts';
import { type Answer, problem } from './answer.ts';

export const NOT_FOUND = problem(404, 'Not found');

/**
 * Last parameters that match slashes too: what they name may hold some, and no route lies below. So a proxy in front
 * may decode the slashes of a branch's name.
 */
const WITH_SLASHES = /\{(path|branch|archive|comparison)\}$/;

/** Returns the name of the last parameter if it matches slashes too, which the router calls `*`; else null. */
export function slashedParameter(path: string): string | null {
  return WITH_SLASHES.exec(path)?.[1] ?? null;
}

/** Returns a path of the table of routes in the router's notation. */
export function routerPath(path: string): string {
  return path.replace(WITH_SLASHES, '*').replaceAll(/\{(\w+)\}/g, ':$1');
}

export interface PathMethod {
  readonly method: string;
  readonly path: string;
  readonly unlisted?: true;
}

/** Whether the route answers HEAD like GET. */
export function hasHead({ method, unlisted }: PathMethod): boolean {
  return method === 'GET' && unlisted !== true;
}

/**
 * Returns whether a target that the router gave to a route is another one's: its path is in the table as it is, and the
 * router, which looks for the method first, took a part of it for a parameter.
 */
export function createForeignPath(routes: readonly PathMethod[]): (route: PathMethod, target: string) => boolean {
  const literal = new Set(routes.flatMap(({ path }) => (path.includes('{') ? [] : [path])));
  return ({ path }, target) => path.includes('{') && literal.has(pathOf(target));
}

/** Answers a target that matches no route: 405 with the allowed methods if its path is in the table, else 404. */
export function createUnmatched(routes: readonly PathMethod[]): (target: string) => Answer {
  const patterns = routes.map((route) => {
    const methods = hasHead(route) ? [route.method, 'HEAD'] : [route.method];
    return { path: route.path, methods, pattern: patternOf(route.path) };
  });
  return (target) => {
    const path = pathOf(target);
    const matching = patterns.filter(({ pattern }) => pattern.test(path));
    const literal = matching.filter((found) => found.path === path);
    const allowed = (literal.length > 0 ? literal : matching).flatMap(({ methods }) => methods);
    if (allowed.length === 0) return NOT_FOUND;
    return problem(405, 'Method not allowed', { allow: [...new Set(allowed)].join(', ') });
  };
}

function patternOf(path: string): RegExp {
  const literals = path.split(/\{\w+\}/).map((literal) => literal.replaceAll('.', '\\.'));
  const last = slashedParameter(path) === null ? null : '.*';
  const joined = literals.reduce((pattern, literal, index) => {
    const isLast = index === literals.length - 1;
    return `${pattern}${isLast && last !== null ? last : '[^/]+'}${literal}`;
  });
  return new RegExp(`^${joined}$`);
}
