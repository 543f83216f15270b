/** The rules of usernames, repository names and email addresses (docs/interface.md, Repositories). */
import { EMAIL_LENGTH_MAX, REPOSITORY_NAME_LENGTH_MAX, USERNAME_LENGTH_MAX } from '../kernel/limits.ts';
import type { Refusal } from '../kernel/refusal.ts';
import { asciiLowerCase } from '../kernel/text.ts';

/** The shortest username. */
const USERNAME_LENGTH_MIN = 2;

/** Every first path segment of the website and the API, and names that people would take for the operator's. */
const RESERVED_USERNAMES: ReadonlySet<string> = new Set([
  'access-tokens',
  'admin',
  'api',
  'assets',
  'docs',
  'forgotten-password',
  'healthz',
  'history',
  'login',
  'logout',
  'metrics',
  'mfa-tokens',
  'new',
  'oidc-trust',
  'r',
  'readyz',
  'root',
  'security',
  'settings',
  'sign-in',
  'sign-out',
  'sign-up',
  'static',
  'storage-buckets',
  'support',
  'system',
  'usage',
  'v1',
  'webhooks',
  'well-known',
]);

/** Windows reserves these names for devices, also before a dot, so no client there can clone into such a folder. */
const DEVICE_NAME = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i;
const USERNAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;

export function usernameRefusal(username: string): Refusal | null {
  if (username.length < USERNAME_LENGTH_MIN || username.length > USERNAME_LENGTH_MAX) {
    const reason = `A username has ${USERNAME_LENGTH_MIN} to ${USERNAME_LENGTH_MAX} characters`;
    return { code: 'username-invalid', reason };
  }
  if (!USERNAME.test(username)) {
    const reason = 'A username holds a-z, 0-9 and single hyphens, none at its ends';
    return { code: 'username-invalid', reason };
  }
  const reserved = RESERVED_USERNAMES.has(username) || DEVICE_NAME.test(username);
  return reserved ? { code: 'username-reserved', username } : null;
}

/** Returns true if an account may have this name. Reserved names pass: an account may have taken one before that. */
export function isUsernameForm(text: string): boolean {
  return text.length <= USERNAME_LENGTH_MAX && USERNAME.test(text);
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
  if (DEVICE_NAME.test(name)) return 'A repository is not called like a device of Windows';
  return null;
}

/** Returns the form in which repository names are compared. Uniqueness and lookups ignore the case of A to Z. */
export function repositoryNameKey(name: string): string {
  return asciiLowerCase(name);
}

/** Accepts text with exactly one `@` and no white space or control character. Only a sent mail proves more. */
export function emailRefusal(email: string): Refusal | null {
  const plausible = email.length <= EMAIL_LENGTH_MAX && /^[^\s@\p{Cc}\p{Cs}]+@[^\s@\p{Cc}\p{Cs}]+$/u.test(email);
  return plausible ? null : { code: 'email-invalid' };
}

/** Returns the form in which addresses are compared. Two addresses that differ only in case are equal. */
export function emailKey(email: string): string {
  return email.toLowerCase();
}
