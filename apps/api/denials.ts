/**
 * The REST answers to refused requests: by admission, by use cases, and by the bounds of rates and bytes.
 *
 * Invariants: a repository that the caller does not see gets the answer of one that does not exist.
 */
import type { Refusal } from '../../core/kernel/refusal.ts';
import type { Denial } from '../front-door/admission.ts';
import type { RateRefusal } from '../front-door/callers.ts';
import type { HeldRefusal } from '../front-door/held-bytes.ts';
import { lackMessage, rateRefusalText } from '../front-door/texts/denials.ts';
import { REFUSALS, refusalText, refusedField } from '../front-door/texts/refusals.ts';
import { type Answer, problem, unauthenticated } from './http/answer.ts';

const NO_TOKEN = unauthenticated('An access token is needed: Authorization: Bearer <token>');
const BAD_TOKEN = unauthenticated('The access token is not valid');
const REPOSITORY_NOT_FOUND = refusalAnswer({ code: 'repository-not-found' });

export function denialAnswer(denial: Denial): Answer {
  switch (denial.denied) {
    case 'credential-missing':
      return NO_TOKEN;
    case 'credential-not-valid':
      return BAD_TOKEN;
    case 'too-many-failed-tokens':
      return problem(429, 'This access token is not valid, as too many others from your address', {
        'retry-after': String(denial.waitSeconds),
      });
    case 'rate-exceeded':
      return rateAnswer(denial.refusal);
    case 'not-permitted':
      return problem(403, lackMessage(denial.lack));
    case 'repository-not-found':
      return REPOSITORY_NOT_FOUND;
  }
}

/** The answer to what a use case refuses. */
export function refusalAnswer(refusal: Refusal): Answer {
  const { status } = REFUSALS[refusal.code];
  const field = refusedField(refusal);
  const text = refusalText(refusal);
  if (status === 401) return unauthenticated(text);
  const headers = 'waitSeconds' in refusal ? { 'retry-after': String(refusal.waitSeconds) } : {};
  return problem(status, field === null ? text : [{ loc: ['body', field], msg: text, type: refusal.code }], headers);
}

/** 429, with what is left of the caller's rate, and when to try again. */
export function rateAnswer(refusal: RateRefusal): Answer {
  const { limit, remaining, resetSeconds } = refusal.rate;
  return problem(429, rateRefusalText(refusal), {
    'retry-after': String(refusal.waitSeconds),
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(resetSeconds),
  });
}

export function unsentRefusalAnswer({ status, text, waitSeconds }: HeldRefusal): Answer {
  return problem(status, text, { 'retry-after': String(waitSeconds) });
}

/** The rest of the body is not read, so the connection cannot be used again. */
export function bodyRefusalAnswer({ status, text, waitSeconds }: HeldRefusal): Answer {
  return problem(status, text, { 'retry-after': String(waitSeconds), connection: 'close' });
}
