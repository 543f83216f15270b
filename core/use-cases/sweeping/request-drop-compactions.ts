/**
 * The policy that asks for a compaction of each repository that holds what no ref has reached within the retention.
 *
 * Invariants: `uncleanSince` of a repository is the time of one of its events, and each of these events is passed
 * when the retention has passed since. One that is passed while the repository is deleted asks for nothing, so its
 * undeletion is looked at as well. So the log is all that the policy must remember, and a repository that nobody
 * touches any more is asked for too. Any number of nodes may run it.
 */
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { plusMs, type RepositoryId, uuid } from '../../kernel/ids.ts';
import type { LayerCompactions } from '../../ports/layer-compactions.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { dropsObjects } from '../../repository/layers.ts';
import { isDroppingDue, leavesObjects } from '../../repository/unreached.ts';
import type { Context } from '../../runtime/execute.ts';
import { type PassingContext, passEvents } from '../../runtime/pass-events.ts';

export interface DropRequestsContext extends Context, Pick<PassingContext, 'marks'> {
  readonly compactions: Pick<LayerCompactions, 'want'>;
  readonly retentionMs: number;
}

const POLICY = 'unreached-objects';

/**
 * Reads the log from where it stopped, up to the first event that left objects and is younger than the retention.
 * Rejects if the log, the marks or the rows cannot be reached. Resolves early when the signal is aborted.
 */
export async function askForDrops(context: DropRequestsContext, signal: { readonly aborted: boolean }): Promise<void> {
  // An event is passed only once, so the repositories in memory must be as new as the events.
  await context.entities.barrier();
  await passEvents(context, POLICY, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if what the event left is still inside the retention. */
async function pass(context: DropRequestsContext, recorded: RecordedEvent): Promise<boolean> {
  if (categoryOf(recorded.stream) !== repositories.category || !mayLeave(recorded)) return true;
  const now = context.clock.now();
  const isUndeletion = recorded.type === 'RepositoryReopened';
  if (!isUndeletion && now < plusMs(recorded.occurredAt, context.retentionMs)) return false;
  const repository = uuid<RepositoryId>(entityIdOf(recorded.stream));
  const { state } = await context.entities.get(repositories, repository);
  if (state.status === 'open' && isDroppingDue(state, now, context.retentionMs) && recorded.accountId !== null) {
    await context.compactions.want({ account: recorded.accountId, repository }, now);
  }
  return true;
}

/**
 * Whether the event may have set `uncleanSince`, or stands behind one that was passed in vain. The updates of a wide
 * push are in other streams.
 */
function mayLeave(recorded: RecordedEvent): boolean {
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  if (event.type === 'RepositoryReopened') return true;
  if (event.type === 'LayersCompacted') return dropsObjects(event) && !event.data.clean;
  return event.type === 'RefsUpdated' && (event.data.parts !== null || leavesObjects(event.data));
}
