/**
 * Answers with contents of a repository.
 *
 * Invariants: every byte sent counts against the account's transfer quota, whether it was kept or is read.
 */
import type { Refusal } from '../../core/kernel/refusal.ts';
import { versionOf } from '../../core/use-cases/reading/repository-view.ts';
import { ARCHIVE_PACE } from '../front-door/reader-pace.ts';
import { countRefusedRead } from '../front-door/refused-reads.ts';
import { countSent } from '../front-door/transfer-budget.ts';
import { answerWith, type Representation } from './representation.ts';
import type { Outcome, RepositoryCall } from './route.ts';

export interface Metering {
  /** What the answer depends on beside the revision of the repository; null for one that is not kept. */
  readonly key: string | null;
  /** Whether ranges are honoured. */
  readonly withRanges: boolean;
}

/** Whether git has made all of a representation, so that only its bytes wait for their reader. */
interface Made {
  readonly isMade?: () => boolean;
}

/** Answers what is kept of this revision, or else made. */
export async function metered(
  { context, repository, request, principal }: RepositoryCall,
  { key, withRanges }: Metering,
  make: () => Promise<(Representation & Made) | { readonly refused: Refusal }>,
): Promise<Outcome> {
  if (!(await context.transferBudget.hasRoom(repository.accountId, repository.account.plan))) {
    countRefusedRead(context, principal, 'transfer-quota-reached');
    return { refused: { code: 'transfer-quota-reached' } };
  }
  const whole = key === null ? null : `contents ${versionOf(repository)} ${key}`;
  const known = whole === null ? undefined : context.bodies.get(whole);
  const made = known ?? (await make());
  if ('refused' in made) return made;
  const body = known === undefined && whole !== null && 'bytes' in made ? context.bodies.keep(whole, made) : made;
  const address = context.clientAddress(request);
  return answerWith(request, body, {
    withRanges,
    ...('isMade' in made && made.isMade !== undefined ? { pace: { ...ARCHIVE_PACE, isOver: made.isMade } } : {}),
    onSent: (sentBytes) => countSent(context, repository, { principal, address, sentBytes }),
  });
}
