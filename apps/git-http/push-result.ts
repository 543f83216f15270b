/**
 * What became of a push, for the metrics and the log: git gets the refusal of a push inside an answer with status 200,
 * so the status does not tell it.
 *
 * Invariants: a class is a code of the code's own, never a text that a client sends, so the number of classes is
 * bounded. Only what the operator of the service can cure is an outage: no client can cause one by what it sends, nor
 * by a bucket of its own that fails.
 */
import type { RefNameRefusalCode } from '../../core/git/ref-name.ts';
import type { CommandList, CommandListRefusal } from '../../core/git/wire/command-list.ts';
import type { RefRefusalCode } from '../../core/repository/commands.ts';
import type { PushOutcome, PushRefusal } from '../../core/use-cases/pushing/push-refs.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import type { RateRefusal } from '../front-door/callers.ts';
import type { HeldRefusal } from '../front-door/held-bytes.ts';
import { bucketOutageLine } from '../front-door/texts/bucket-outages.ts';
import { type OutageCode, outageCodeOf } from '../front-door/texts/outages.ts';
import { GitHttpError, type GitHttpErrorCode } from './answer.ts';
import { BodyError, type BodyErrorCode } from './body.ts';

type PushClass =
  | PushRefusal['code']
  | RefRefusalCode
  | RefNameRefusalCode
  | CommandListRefusal['refused']
  | RateRefusal['exceeded']
  | BodyErrorCode
  | GitHttpErrorCode
  | OutageCode
  | 'client-left'
  /** An error that is in no table: a bug. */
  | 'fault';

export type PushResult =
  /** All refs are as the client asked. */
  | { readonly outcome: 'ok' }
  /** One ref or more are not, for the reason `class`. */
  | { readonly outcome: 'refused' | 'outage'; readonly class: PushClass };

export const PUSHED: PushResult = { outcome: 'ok' };

export function refusedFor(code: PushClass): PushResult {
  return { outcome: 'refused', class: code };
}

function outageFor(code: PushClass): PushResult {
  return { outcome: 'outage', class: code };
}

/** The refusals of a push that say that the service failed. */
const OUTAGES_BY_REFUSAL: ReadonlySet<PushRefusal['code']> = new Set(['disk-full', 'push-took-too-long'] as const);

/** Returns the result of a push whose commands were refused. `full` says what had no room for them, if that is why. */
export function resultOfList({ refused }: Pick<CommandListRefusal, 'refused'>, full: HeldRefusal | null): PushResult {
  return full?.status === 503 ? outageFor(refused) : refusedFor(refused);
}

/** Returns the result of a push that the use case has decided. Of several refused refs the first counts. */
export function resultOfPush(
  { refusedCommands }: Pick<CommandList, 'refusedCommands'>,
  outcome: PushOutcome,
): PushResult {
  if ('refused' in outcome) {
    const { code } = outcome.refused;
    return OUTAGES_BY_REFUSAL.has(code) ? outageFor(code) : refusedFor(code);
  }
  const codes = outcome.results.flatMap(({ code }) => code ?? []);
  // The other refs of an atomic push are refused because of the one that has a reason of its own.
  const cause = codes.find((code) => code !== 'atomic-push-refused') ?? refusedCommands[0]?.refused ?? codes[0];
  return cause === undefined ? PUSHED : refusedFor(cause);
}

/**
 * Returns the result of a push that an error has ended. `repository` is null while it is not known; `hasLeft` says that
 * the client did not wait for its answer.
 */
export function resultOfError(
  error: unknown,
  { repository, hasLeft }: { readonly repository: FoundRepository | null; readonly hasLeft: boolean },
): PushResult {
  if (error instanceof GitHttpError) return refusedFor(error.code);
  if (error instanceof BodyError) {
    return error.code === 'body-of-all-held' ? outageFor(error.code) : refusedFor(error.code);
  }
  // The failure of work for a client that left is no news.
  if (hasLeft) return refusedFor('client-left');
  const code = outageCodeOf(error);
  if (code === null) return outageFor('fault');
  const isOfBucket = code !== 'disk-full' && repository !== null && bucketOutageLine(repository, error) !== null;
  return isOfBucket ? refusedFor(code) : outageFor(code);
}
