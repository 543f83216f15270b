/** Repositories as people name them: `NAME`, `USER/NAME`, a URL, or the one that the current folder was cloned from. */
import { ApiError, type Client } from '../client/client.ts';
import type { Repository } from '../client/operations.ts';
import type { Context } from './context.ts';
import { usageFailure } from './failure.ts';
import { capturedGit } from './git.ts';
import type { Session } from './host.ts';

export interface RepositoryName {
  readonly username: string;
  readonly name: string;
}

const PART = /^[A-Za-z0-9._-]+$/;

/** Resolves a name; without one the repository of a remote of the current folder. */
export async function repositoryNamed(
  context: Context,
  session: Session,
  given: string | undefined,
): Promise<RepositoryName> {
  if (given === undefined) return repositoryHere(context, session);
  const fromUrl = repositoryOfUrl(given, session.host.webUrl);
  if (fromUrl !== null) return fromUrl;
  const parts = given.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || !parts.every((part) => PART.test(part))) {
    throw usageFailure(
      `${JSON.stringify(given)} names no repository`,
      'Give NAME, USER/NAME or the URL of a repository',
    );
  }
  return second === undefined
    ? { username: await usernameOf(session), name: first }
    : { username: first, name: second };
}

/** Returns the name of the caller's account. */
export async function usernameOf({ host, client }: Session): Promise<string> {
  if (host.username !== null) return host.username;
  const first = await firstRepository(client);
  if (first !== null) return first.username;
  throw usageFailure('The name of your account is not known', 'Set SERVICE_USERNAME, or write USER/NAME');
}

/** Null without repositories, and for a token that may not list them. */
async function firstRepository(client: Client): Promise<Repository | null> {
  try {
    const { repositories } = await client.call('listRepositories', { query: { limit: 1 } });
    return repositories[0] ?? null;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return null;
    throw error;
  }
}

async function repositoryHere(context: Context, { host }: Session): Promise<RepositoryName> {
  const found = await repositoryOfFolder(context, host.webUrl);
  if (found !== null) return found;
  throw usageFailure(`No remote of this folder is on ${host.webUrl}`, 'Name the repository: NAME or USER/NAME');
}

/** Returns the repository of a remote of the current folder; null if no remote is on the service. */
export async function repositoryOfFolder(context: Context, webUrl: string): Promise<RepositoryName | null> {
  const listed = await capturedGit(context, ['remote', '--verbose']);
  for (const line of listed?.split('\n') ?? []) {
    const found = repositoryOfUrl(line.split(/\s/)[1] ?? '', webUrl);
    if (found !== null) return found;
  }
  return null;
}

/** Reads `<web address>/r/<username>/<name>.git`, or the address of its page; null for any other text. */
export function repositoryOfUrl(text: string, webUrl: string): RepositoryName | null {
  if (!/^https?:/.test(text) || !URL.canParse(text)) return null;
  const [url, web] = [new URL(text), new URL(webUrl)];
  const folder = web.pathname.replace(/\/+$/, '');
  if (url.origin !== web.origin || !url.pathname.startsWith(`${folder}/`)) return null;
  const [, username, name] =
    /^(?:r\/)?([^/]+)\/([^/]+?)(?:\.git)?\/?$/.exec(url.pathname.slice(folder.length + 1)) ?? [];
  if (username === undefined || name === undefined || !PART.test(username) || !PART.test(name)) return null;
  return { username, name };
}
