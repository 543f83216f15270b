/** The rules of usernames, repository names and email addresses (docs/interface.md, Repositories). */
import type { SpellDomain } from '../kernel/domain-spellings.ts';
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

/**
 * Accepts text with exactly one `@`, no white space or control character, and a domain that may exist. Only a sent mail
 * proves more.
 */
export function emailRefusal(email: string, spellDomain: SpellDomain): Refusal | null {
  const plausible = email.length <= EMAIL_LENGTH_MAX && /^[^\s@\p{Cc}\p{Cs}]+@[^\s@\p{Cc}\p{Cs}]+$/u.test(email);
  if (!plausible) return { code: 'email-invalid', reason: 'This is not an email address' };
  const domain = domainOf(email);
  if (!isInternational(domain)) return null;
  const spellings = spellDomain(domain);
  if (spellings === null) return { code: 'email-invalid', reason: 'No domain can have the name behind the "@"' };
  return localPartOf(email).length + spellings.ascii.length <= EMAIL_LENGTH_MAX
    ? null
    : { code: 'email-invalid', reason: `With its domain in ASCII, this is longer than ${EMAIL_LENGTH_MAX} characters` };
}

/**
 * Returns the forms in which an address is compared, without regard to case: first that of new claims, with its domain
 * in ASCII. The others are forms that claims had before: as typed, and with the letters of the domain's language. Text
 * that is no address has one form.
 */
export function emailKeys(email: string, spellDomain: SpellDomain): readonly [string, ...string[]] {
  const typed = email.toLowerCase();
  const domain = domainOf(email);
  const spellings = email.length <= EMAIL_LENGTH_MAX && isInternational(domain) ? spellDomain(domain) : null;
  if (spellings === null) return [typed];
  const localPart = localPartOf(email).toLowerCase();
  const [first, ...others] = [`${localPart}${spellings.ascii}`, typed, `${localPart}${spellings.unicode}`] as const;
  return [first, ...new Set(others.filter((other) => other !== first))];
}

/** Returns the text before the domain, with the `@`. */
function localPartOf(email: string): string {
  return email.slice(0, email.lastIndexOf('@') + 1);
}

function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1);
}

/** Any other domain has one spelling, and is taken as it was typed. */
function isInternational(domain: string): boolean {
  return /[^\0-\x7f]|(^|\.)xn--/i.test(domain);
}
