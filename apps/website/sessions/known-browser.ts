/**
 * Remembers in a cookie which accounts somebody signed in to with this browser. It has a count of its own for wrong
 * passwords, so that strangers who guess lock nobody out.
 *
 * Invariants: the cookie lets nobody in. Only the service can make one, for an account that was signed in to.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AccountId } from '../../../core/kernel/ids.ts';
import type { Cookies } from './cookies.ts';

/**
 * How long a browser is known by its sign-ins. Internal: the browser drops the cookie then, and the server does not
 * look at its age.
 */
const KNOWN_BROWSER_SPAN_MS = 365 * 24 * 60 * 60_000;
/** To how many accounts a browser is known: the newest. */
export const KNOWN_ACCOUNTS_MAX = 5;

/** The browser's random id, and a proof for each account, newest first. */
interface KnownBrowser {
  readonly id: string;
  readonly proofs: readonly string[];
}

const PART = /^[A-Za-z0-9_-]{22}$/;

function parseKnownBrowser(cookie: string | undefined): KnownBrowser | null {
  const [id, ...proofs] = cookie?.split('.') ?? [];
  const isWhole =
    id !== undefined && proofs.length <= KNOWN_ACCOUNTS_MAX && [id, ...proofs].every((part) => PART.test(part));
  return isWhole ? { id, proofs } : null;
}

function proofOf(key: string, id: string, account: AccountId): string {
  return createHmac('sha256', key).update(`known-browser ${id} ${account}`).digest('base64url').slice(0, 22);
}

/** Returns the id of the browser if somebody signed in to the account with it before, else null. */
export function knownBrowser(
  { formKey, cookies }: { readonly formKey: string; readonly cookies: Cookies },
  request: FastifyRequest,
  account: AccountId,
): string | null {
  const known = parseKnownBrowser(request.cookies[cookies.names.browser]);
  if (known === null) return null;
  const expected = Buffer.from(proofOf(formKey, known.id, account));
  return known.proofs.some((proof) => timingSafeEqual(Buffer.from(proof), expected)) ? known.id : null;
}

/** Notes that somebody signed in to the account. */
export function rememberBrowser(
  { formKey, cookies }: { readonly formKey: string; readonly cookies: Cookies },
  request: FastifyRequest,
  reply: FastifyReply,
  account: AccountId,
): void {
  const known = parseKnownBrowser(request.cookies[cookies.names.browser]);
  const id = known?.id ?? randomBytes(16).toString('base64url');
  const proof = proofOf(formKey, id, account);
  const others = (known?.proofs ?? []).filter((other) => other !== proof);
  const value = [id, proof, ...others.slice(0, KNOWN_ACCOUNTS_MAX - 1)].join('.');
  const maxAge = KNOWN_BROWSER_SPAN_MS / 1_000;
  reply.setCookie(cookies.names.browser, value, { ...cookies.attributes, maxAge });
}
