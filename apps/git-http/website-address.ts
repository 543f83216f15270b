/**
 * Leads a Git client that was given a repository's page as its remote, as people copy it from the browser, to the
 * repository: git follows, and says where it lies.
 *
 * Invariants: the answer is made from the address alone, so it tells nothing of what exists.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { NO_CACHE } from './answer.ts';
import { routesOf } from './routes.ts';
import { parseGitTarget } from './target.ts';

/** Returns where the refs lie that this target asks the website for; null for any other target. */
export function repositoryBehind(target: string): string | null {
  const named = parseGitTarget(`/r${target}`);
  if (named === null || named.path !== 'info/refs') return null;
  const routes = routesOf(named);
  if (routes === 'dumb' || routes[0] === undefined) return null;
  const { username, name, moment } = named;
  const repository = moment === null ? name : `${name}@${moment}`;
  return `/r/${username}/${repository}.git/info/refs?service=${routes[0].service}`;
}

export function leadTo(location: string, request: IncomingMessage, response: ServerResponse): void {
  const repository = location.slice(0, location.indexOf('/info/refs'));
  const body = `This is the address of a page: the repository lies at ${repository}\n`;
  // A body is not read, so the connection cannot be used again.
  if (!request.complete && request.method !== 'GET') response.setHeader('Connection', 'close');
  const headers = { ...NO_CACHE, 'Content-Type': 'text/plain; charset=utf-8', Location: location };
  response.writeHead(301, headers).end(body);
}
