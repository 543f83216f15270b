/**
 * Changes of refs that a client may repeat under an `Idempotency-Key` (docs/interface.md, Changing refs).
 *
 * Invariants: the caller is admitted before its key is looked up. A repeat is answered before it is counted as a
 * change. Only a change that was made is remembered: a refused request may be sent again under its key.
 */
import { lookUpKey, type UsedKey } from '../../core/use-cases/pushing/push-keys.ts';
import type { PushKey } from '../../core/use-cases/pushing/push-refs.ts';
import { refusalText } from '../front-door/texts/refusals.ts';
import { type Answer, explained, problem } from './http/answer.ts';
import { IDEMPOTENCY_KEY_LENGTH_MAX, readIdempotencyKey } from './http/idempotency-key.ts';
import type { Outcome, RepositoryCall } from './route.ts';

export const MALFORMED_KEY = `An Idempotency-Key has 1 to ${IDEMPOTENCY_KEY_LENGTH_MAX} printable characters, quoted or not`;

export interface RepeatableChange {
  readonly operation: string;
  /** All that the request asks for: the output of a schema, which has the members in the schema's order. */
  readonly asked: object;
  /** Makes the change, under the key if there is one. */
  readonly change: (key: PushKey | null) => Promise<Outcome>;
  /** Answers from the change that the key was used for. */
  readonly repeat: (used: UsedKey) => Promise<Outcome>;
}

/** Makes the change; if one was made under the request's key already, answers from that. */
export async function changedOnce(
  { context, request, repository, principal, position }: RepositoryCall,
  { operation, asked, change, repeat }: RepeatableChange,
): Promise<Outcome> {
  const read = readIdempotencyKey(request.headers);
  if (read === 'malformed') return problem(400, MALFORMED_KEY);
  const { key } = read;
  if (key === null) return change(null);
  const requestDigest = context.digest.sha256(JSON.stringify(asked));
  const found = await lookUpKey(context, { repository, principal, operation, key, requestDigest, position });
  if ('refused' in found) return refusedOnce(found);
  if ('used' in found) return repeated(await repeat(found.used));
  const { free } = found;
  const { keysInUse } = context;
  if (keysInUse.has(free.id)) return IN_USE;
  keysInUse.add(free.id);
  try {
    return refusedOnce(await change(free));
  } finally {
    keysInUse.delete(free.id);
  }
}

/** The answer to a repeat whose objects have left storage since. */
export const GONE: Outcome = { refused: { code: 'objects-expired', event: null } };

const IN_USE = keyInUse();

/** Another node was faster with the same key. */
function refusedOnce(outcome: Outcome): Outcome {
  return 'refused' in outcome && outcome.refused.code === 'key-in-use' ? IN_USE : outcome;
}

function keyInUse(): Answer {
  const code = 'key-in-use';
  const answer = explained(409, { detail: refusalText({ code }), code });
  return { ...answer, headers: { ...answer.headers, 'retry-after': '1' } };
}

function repeated(outcome: Outcome): Outcome {
  if ('refused' in outcome) return outcome;
  return { ...outcome, headers: { ...outcome.headers, 'idempotent-replayed': 'true' } };
}
