/**
 * The policy that lets the layers of deleted repositories go, after the retention. remove-purged.ts removes their
 * bytes.
 *
 * Invariants: a repository that was undeleted keeps its layers, however late the policy runs: the expiry is decided on
 * the repository's own stream, and a later deletion counts from its own time. A closing is passed only after all layers
 * were named, so the mark is all that the policy must remember. Any number of nodes may run it.
 */
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { plusMs, type RepositoryId, uuid } from '../../kernel/ids.ts';
import { decideRepository } from '../../repository/decide.ts';
import { repositories } from '../../repository/evolve.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import type { ManifestOf } from '../manifests/write-manifest.ts';

export interface DeletedExpiryContext extends Context, Pick<PassingContext, 'marks'> {
  readonly retentionMs: number;
  /** Writes the manifest of the repository, unless its store fails. */
  readonly manifestNow: (of: ManifestOf) => Promise<void>;
}

const POLICY = 'deleted-expiry';

/**
 * Reads the log from where it stopped, up to the first deletion that is younger than the retention. Rejects if the log
 * or the marks cannot be reached. Resolves early when the signal is aborted.
 */
export async function expireDeleted(
  context: DeletedExpiryContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  await passEvents(context, POLICY, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if the repository can still be undeleted. */
async function pass(context: DeletedExpiryContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'RepositoryClosed' || categoryOf(recorded.stream) !== repositories.category) return true;
  if (context.clock.now() < plusMs(recorded.occurredAt, context.retentionMs)) return false;
  const repository = uuid<RepositoryId>(entityIdOf(recorded.stream));
  const about = { account: recorded.accountId, cause: systemCause(context.ids, POLICY, recorded.id) };
  let expired = false;
  for (let more = true; more; ) {
    const executed = await execute(context, repositories, repository, about, (state) => {
      const decision = decideRepository(state, { type: 'ExpireDeleted', closedUntil: recorded.occurredAt });
      more = !('refused' in decision) && decision.events.length > 0;
      return decision;
    });
    if ('refused' in executed) throw new TypeError(`The expiry was refused: ${executed.refused.code}`);
    expired ||= more;
  }
  if (expired && recorded.accountId !== null) await context.manifestNow({ account: recorded.accountId, repository });
  return true;
}
