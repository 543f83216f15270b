/**
 * Parses the target of a Git client's request: a repository, optionally as of a moment, and an endpoint below it.
 *
 * Invariants: no escape of `/`, of NUL or of `%` reaches a lookup, and no name is decoded twice.
 */
import { repositoryNameRefusal } from '../../core/account/names.ts';
import { momentInUrl, parseMoment } from '../../core/audit/moment.ts';

export interface GitTarget {
  readonly username: string;
  /** Without `.git`. */
  readonly name: string;
  /** The text between `@` and `.git`: it may hold escapes, of `+` above all. Null for the current state. */
  readonly moment: string | null;
  /** The part after `<username>/<repository>.git/`, without the query. */
  readonly path: string;
  /** Without its question mark. */
  readonly query: string;
}

/**
 * Names hold no character that needs an escape, so a name with an escape that stayed matches nothing. No name holds
 * an `@`, so the first one begins a moment: an RFC 3339 time, with or without escapes, or the id of an event.
 */
const PATH =
  /^\/([A-Za-z0-9-]{1,64})\/([A-Za-z0-9._-]{1,128}?)(?:@([A-Za-z0-9][A-Za-z0-9%:+.-]{0,63}?))?(?:\.git)?\/(.+)$/i;

/** A repository's own address, with nothing below. */
const REPOSITORY =
  /^\/r\/([A-Za-z0-9-]{1,64})\/([A-Za-z0-9._-]{1,128}?)(?:@([A-Za-z0-9][A-Za-z0-9%:+.-]{0,63}?))?(?:\.git)?\/?$/i;

/** Unreserved characters (RFC 3986, section 2.3), and those before and in a moment. */
const MEANT = /^[A-Za-z0-9._~@:-]$/;

/**
 * Returns the path of a target, without escapes of characters that mean the same without one (RFC 3986, section
 * 6.2.2.2). All others stay, and what comes out is not read again: `%252F` and `%2541` keep their escapes.
 */
function plainPath(target: string): string {
  const at = target.indexOf('?');
  const path = at === -1 ? target : target.slice(0, at);
  if (!path.includes('%')) return path;
  return path.replaceAll(/%[0-9a-f]{2}/gi, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
    return MEANT.test(character) ? character : escape;
  });
}

/** Returns whether only git may lie at this target. */
export function isBelowGit(target: string): boolean {
  return plainPath(target).startsWith('/r/');
}

/** Takes a target below `/r/`, or below the address of a repository's page. Null: it names no repository. */
export function parseGitTarget(target: string): GitTarget | null {
  const path = plainPath(target);
  const [, username, name, moment = null, below] = PATH.exec(path.startsWith('/r/') ? path.slice(2) : path) ?? [];
  if (username === undefined || name === undefined || below === undefined) return null;
  const at = target.indexOf('?');
  return { username, name, moment, path: below, query: at === -1 ? '' : target.slice(at + 1) };
}

/**
 * Returns the path of the page of the repository whose clone address the target is; null for any other target. It is
 * made from the address alone, so it tells nothing of what exists.
 */
export function pageOfCloneAddress(target: string): string | null {
  const [, username, name, momentText] = REPOSITORY.exec(plainPath(target)) ?? [];
  if (username === undefined || name === undefined || repositoryNameRefusal(name) !== null) return null;
  const page = `/${username}/${name}`;
  if (momentText === undefined) return page;
  const moment = parseMoment(decodedMoment(momentText));
  return moment === null ? null : `${page}?at=${momentInUrl(moment)}`;
}

/** Returns the moment of a target without escapes. */
export function decodedMoment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Broken escapes are part of no moment.
    return text;
  }
}
