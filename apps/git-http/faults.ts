/**
 * The plain-text answers to denied and failed requests of Git clients, which git shows after `remote:`.
 *
 * Invariants: a repository that the caller does not see gets the answer of one that does not exist. An answer
 * repeats the message of a thrown error only for GitHttpError and BodyError, whose messages are written for clients.
 */
import { ReaderTooSlow } from '../../core/kernel/reader-too-slow.ts';
import type { Denial } from '../front-door/admission.ts';
import type { RateRefusal } from '../front-door/callers.ts';
import { lackMessage, NO_ROOM_FOR_READER, rateRefusalText } from '../front-door/texts/denials.ts';
import { type Outage, outageOf } from '../front-door/texts/outages.ts';
import { GitHttpError } from './answer.ts';
import { BodyError, type BodyErrorCode } from './body.ts';

/** Authentication by HTTP Basic (RFC 7617). */
const CHALLENGE = { 'WWW-Authenticate': 'Basic realm="Strata"' } as const;

export function denialError(denial: Denial): GitHttpError {
  switch (denial.denied) {
    case 'credential-missing':
      return new GitHttpError(401, 'Sign in with an access token as the password', CHALLENGE, denial.denied);
    case 'credential-not-valid':
      return new GitHttpError(401, 'This access token is unknown, expired or revoked', CHALLENGE, denial.denied);
    case 'too-many-failed-tokens':
      return new GitHttpError(
        429,
        'This access token is not valid, as too many others from your address',
        { 'Retry-After': String(denial.waitSeconds) },
        denial.denied,
      );
    case 'rate-exceeded':
      return rateError(denial.refusal);
    case 'not-permitted':
      return new GitHttpError(403, lackMessage(denial.lack), {}, denial.denied);
    case 'repository-not-found':
      return new GitHttpError(404, 'Repository not found', {}, denial.denied);
  }
}

function rateError(refusal: RateRefusal): GitHttpError {
  const headers = { 'Retry-After': String(refusal.waitSeconds) };
  return new GitHttpError(429, rateRefusalText(refusal), headers, refusal.exceeded);
}

/**
 * Returns the answer to a thrown error: an error answer, an unacceptable body, an answer without room, an outage, or a
 * bug.
 */
export function faultError(error: unknown, requestId: string): GitHttpError {
  if (error instanceof GitHttpError) return error;
  if (error instanceof BodyError) return bodyError(error);
  if (error instanceof ReaderTooSlow) {
    return new GitHttpError(429, NO_ROOM_FOR_READER.text, { 'Retry-After': String(NO_ROOM_FOR_READER.waitSeconds) });
  }
  const outage = outageOf(error);
  if (outage !== null) return outageError(outage);
  return new GitHttpError(500, `Something went wrong here; the request was ${requestId}`);
}

function bodyError({ code, message }: BodyError): GitHttpError {
  const status = BODY_STATUSES[code];
  const waits = status === 429 || status === 503;
  return new GitHttpError(status, message, waits ? { 'Retry-After': String(BODY_WAIT_SECONDS) } : {});
}

const BODY_WAIT_SECONDS = 5;
const BODY_STATUSES: { readonly [Code in BodyErrorCode]: number } = {
  'body-encoding-unknown': 400,
  'body-broken': 400,
  'body-too-large': 413,
  'body-too-slow': 408,
  'body-of-caller-held': 429,
  'body-of-all-held': 503,
};

function outageError(outage: Outage): GitHttpError {
  const { status, message } = outage;
  if (status === 500) return new GitHttpError(status, message);
  return new GitHttpError(status, message, { 'Retry-After': String(outage.retryAfterSeconds) });
}
