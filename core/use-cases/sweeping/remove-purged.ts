/**
 * The policy that removes the layers of purges and erasures, and of deleted repositories that have passed
 * retention.
 *
 * Invariants: the `LayersExpired` is in the log before, and is passed only after all its layers were removed. They
 * stay an hour, as replaced layers do, since requests under way may read them. Any number of nodes may run the policy.
 */
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { plusMs, type RepositoryId, uuid } from '../../kernel/ids.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../../kernel/limits.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { passEvents } from '../../runtime/pass-events.ts';
import { PURGE_REMOVAL } from '../../usage/waiting-storage.ts';
import { lastBeforeExpiry } from '../repositories/deletions.ts';
import { type LayerExpiryContext, placeAt, removeLayers } from './expire-layers.ts';

export type PurgeRemovalContext = Omit<LayerExpiryContext, 'retentionMs'>;

/**
 * Reads the log from where it stopped, up to the first of these events that is younger than an hour. Rejects if the
 * log, the marks or the store cannot be reached. Resolves early when the signal is aborted.
 */
export async function removePurged(context: PurgeRemovalContext, signal: { readonly aborted: boolean }): Promise<void> {
  await passEvents(context, PURGE_REMOVAL, (recorded) => pass(context, recorded), signal);
}

/** Resolves false if the layers must stay for now. */
async function pass(context: PurgeRemovalContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'LayersExpired' || categoryOf(recorded.stream) !== repositories.category) return true;
  const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
  if (event.type !== 'LayersExpired') return true;
  const { reason, layers } = event.data;
  // Those that a compaction replaced are removed by the policy that records their expiry.
  if (reason === 'retention' && !layers.some(({ current }) => current)) return true;
  if (context.clock.now() < plusMs(recorded.occurredAt, REPLACED_LAYERS_KEPT_MS_MIN)) return false;
  const repository = uuid<RepositoryId>(entityIdOf(recorded.stream));
  // The account forgets a deleted repository, but has it when its stream is closed. The layers were in the place of
  // that time, which a bucket keeps while a repository is in it.
  const owned = await lastBeforeExpiry(context.events, recorded.stream, recorded.revision);
  const place = await placeAt(context, owned ?? recorded, repository);
  await removeLayers(context, place, { repository, revision: recorded.revision, layers });
  return true;
}
