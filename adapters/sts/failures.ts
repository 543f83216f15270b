/**
 * From an error of the SDK to one that the core knows.
 *
 * Invariants: the result holds no part of the request. The SDK's own error holds all of it, so it is no cause.
 */
import type { BucketFaultCode } from '../../core/kernel/bucket-fault.ts';
import { BUCKET_FAULT_MESSAGE_LENGTH_MAX } from '../../core/kernel/limits.ts';
import { RoleRefused } from '../../core/ports/buckets.ts';

/**
 * What the token service says by the names of its errors. Amazon does not tell a missing role from a distrustful one.
 */
const BY_NAME: readonly (readonly [RegExp, BucketFaultCode, string])[] = [
  [/^(AccessDenied|InvalidIdentityToken|IDPRejectedClaim|NoSuchEntity)/, 'credentials-refused', 'refuses the role'],
  [/^(ValidationError|RegionDisabled)/, 'credentials-refused', 'refuses the role'],
  [/^ExpiredToken/, 'clock-skewed', 'takes a new token for expired, so one of the two clocks is wrong'],
  [/^IDPCommunicationError/, 'unreachable', 'cannot read the public keys of this service'],
  [/Throttl|SlowDown|TooManyRequests|LimitExceeded/, 'throttled', 'is asked too often'],
];

/** Codes after which the same question, with a new token, may get another answer. */
const RETRIED: ReadonlySet<BucketFaultCode> = new Set(['throttled', 'timed-out', 'unreachable']);

export function isRetried(error: unknown): boolean {
  return error instanceof RoleRefused && RETRIED.has(error.code);
}

/** Returns the error to report. `token` is cut out of what the token service says. */
export function refusalOf(error: unknown, token: string): RoleRefused {
  const { name, code, status, message } = partsOf(error);
  const known = BY_NAME.find(([names]) => names.test(name));
  if (known !== undefined) {
    const [, fault, what] = known;
    return new RoleRefused(fault, shortened(`The token service ${what}: ${withoutTokens(message, token)}`));
  }
  if (status === 429) return new RoleRefused('throttled', 'The token service is asked too often');
  if (status !== null && status >= 500) {
    return new RoleRefused('unreachable', `The token service cannot answer now (status ${status})`);
  }
  if (status !== null) return new RoleRefused('failed', `The token service gave an unknown answer (status ${status})`);
  if (/^(TimeoutError|AbortError)$/.test(name) || code === 'ETIMEDOUT') {
    return new RoleRefused('timed-out', 'The token service did not answer in time');
  }
  if (/CERT|SIGNATURE|^ERR_TLS/.test(code)) {
    return new RoleRefused('certificate-invalid', `The certificate of the token service is not valid (${code})`);
  }
  if (code !== '') return new RoleRefused('unreachable', `The token service cannot be reached (${code})`);
  return new RoleRefused('failed', 'The token service gave an answer that cannot be read');
}

interface Parts {
  readonly name: string;
  /** The code of the operating system or of TLS; empty if there is none. */
  readonly code: string;
  /** The status of the answer; null if there was none. */
  readonly status: number | null;
  readonly message: string;
}

function partsOf(error: unknown): Parts {
  if (!(error instanceof Error)) return { name: '', code: '', status: null, message: '' };
  const { code, $metadata: metadata } = error as { readonly code?: unknown; readonly $metadata?: unknown };
  const answered = metadata as { readonly httpStatusCode?: unknown } | undefined;
  return {
    name: error.name,
    code: typeof code === 'string' && /^[A-Z0-9_]{1,60}$/.test(code) ? code : '',
    status: typeof answered?.httpStatusCode === 'number' ? answered.httpStatusCode : null,
    message: error.message,
  };
}

/** A token is three parts in base64url. A service may repeat one, whole or cut, in the text of its error. */
function withoutTokens(message: string, token: string): string {
  const [, claims = token, signature = token] = token.split('.');
  const hidden = [token, claims, signature].reduce((text, part) => text.replaceAll(part, '(token)'), message);
  return hidden.replaceAll(/eyJ[\w-]+(\.[\w-]*)*/g, '(token)');
}

/** One line, as the list of a bucket's errors takes it. */
function shortened(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cs}\s]+/gu, ' ')
    .trim()
    .slice(0, BUCKET_FAULT_MESSAGE_LENGTH_MAX);
}
