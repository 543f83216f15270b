/** The rules of usernames, repository names and e-mail addresses (interface.md, Repositories). */
import {
  EMAIL_LENGTH_MAX,
  REPOSITORY_NAME_LENGTH_MAX,
  USERNAME_LENGTH_MAX,
  USERNAME_LENGTH_MIN,
} from '../kernel/limits.ts';
import type { Refusal } from '../kernel/refusal.ts';

/** Every first path segment of the website and the API, and names people would mistake for ours. */
const RESERVED_USERNAMES: ReadonlySet<string> = new Set([
  ...['access-tokens', 'docs', 'healthz', 'history', 'metrics', 'mfa-tokens', 'oidc-trust', 'r', 'readyz'],
  ...['settings', 'sign-in', 'sign-out', 'sign-up', 'storage-buckets', 'usage', 'v1', 'webhooks', 'well-known'],
  ...['admin', 'api', 'assets', 'login', 'logout', 'root', 'security', 'static', 'support', 'system'],
]);

export function usernameRefusal(username: string): Refusal | null {
  if (username.length < USERNAME_LENGTH_MIN || username.length > USERNAME_LENGTH_MAX) {
    const reason = `A username has ${USERNAME_LENGTH_MIN} to ${USERNAME_LENGTH_MAX} characters`;
    return { code: 'username-invalid', reason };
  }
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(username)) {
    const reason = 'A username holds a-z, 0-9 and single hyphens, none at its ends';
    return { code: 'username-invalid', reason };
  }
  return RESERVED_USERNAMES.has(username) ? { code: 'username-reserved', username } : null;
}

export function repositoryNameRefusal(name: string): Refusal | null {
  const reason = repositoryNameFault(name);
  return reason === null ? null : { code: 'repository-name-invalid', reason };
}

function repositoryNameFault(name: string): string | null {
  if (name.length < 1 || name.length > REPOSITORY_NAME_LENGTH_MAX) {
    return `A repository name has 1 to ${REPOSITORY_NAME_LENGTH_MAX} characters`;
  }
  if (!/^[A-Za-z0-9._-]+$/.test(name)) return 'A repository name holds A-Z, a-z, 0-9, ".", "_" and "-" only';
  if (/^[.-]/.test(name)) return 'A repository name does not start with "." or "-"';
  if (name.includes('..')) return 'A repository name does not hold ".."';
  if (/(\.git|\.lock|\.)$/i.test(name)) return 'A repository name does not end in ".git", ".lock" or "."';
  return null;
}

/** Names are unique, and looked up, without case: this is the form compared. */
export function repositoryNameKey(name: string): string {
  return name.toLowerCase();
}

/** An address with one `@`, no white space or control characters: whether it works only a mail would tell. */
export function emailRefusal(email: string): Refusal | null {
  const plausible = /^[^\s@\u0000-\u001f\u007f]+@[^\s@\u0000-\u001f\u007f]+$/u.test(email);
  return plausible && email.length <= EMAIL_LENGTH_MAX ? null : { code: 'email-invalid' };
}

/** Addresses that differ only in case are one account: this is the form compared. */
export function emailKey(email: string): string {
  return email.toLowerCase();
}
