/**
 * Lists the repositories that an account deleted and can have back.
 *
 * Invariants: the list reads the deletions that the undeletion reads (deletions.ts), so it shows nothing as restorable
 * that would be refused for its place.
 */
import { accounts } from '../../account/evolve.ts';
import { createConcurrencyLimit } from '../../kernel/concurrency-limit.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { StreamName } from '../../kernel/envelope.ts';
import { type AccountId, type EventId, plusMs, type RepositoryId, type Timestamp } from '../../kernel/ids.ts';
import { DELETED_REPOSITORIES_LISTED_MAX } from '../../kernel/limits.ts';
import type { LostPlace } from '../../kernel/refusal.ts';
import { type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import { endsRestoration } from '../../repository/layers.ts';
import type { Context } from '../../runtime/execute.ts';
import { type Deletion, type DeletionsContext, deletionsWithinRetention } from './deletions.ts';

export interface DeletedRepository {
  readonly id: RepositoryId;
  /** The name that it had. */
  readonly name: string;
  readonly deletedAt: Timestamp;
  /** Its layers may leave storage from then on. */
  readonly expiresAt: Timestamp;
  readonly sizeBytes: number;
  /** Why it cannot be undeleted; null if it can. */
  readonly lost: LostPlace | null;
}

/** Streams that are folded at the same time. */
const FOLDED_AT_ONCE = 8;

/** Returns those that were deleted within the retention and are not purged, the newest first. */
export async function listDeletedRepositories(
  context: DeletionsContext,
  account: AccountId,
): Promise<readonly DeletedRepository[]> {
  const { state } = await context.entities.get(accounts, account);
  if (state.status !== 'open') return [];
  const deletions = await deletionsWithinRetention(context, account);
  const listed: DeletedRepository[] = [];
  const limited = createConcurrencyLimit(FOLDED_AT_ONCE);
  for (let at = 0; at < deletions.length && listed.length < DELETED_REPOSITORIES_LISTED_MAX; ) {
    const chunk = deletions.slice(at, at + DELETED_REPOSITORIES_LISTED_MAX);
    at += chunk.length;
    const found = await Promise.all(chunk.map((deletion) => limited(() => describe(context, deletion))));
    listed.push(...found.flatMap((one) => one ?? []));
  }
  return listed.slice(0, DELETED_REPOSITORIES_LISTED_MAX);
}

async function describe(
  context: DeletionsContext,
  { owned: { id, name }, deletedAt, lost }: Deletion,
): Promise<DeletedRepository | null> {
  const { state } = await context.entities.get(repositories, id);
  if (state.status !== 'closed' || state.expired) return null;
  const expiresAt = plusMs(deletedAt, context.retentionMs);
  return { id, name, deletedAt, expiresAt, sizeBytes: state.before.layersSizeBytes, lost };
}

/** Returns the last event that ended a restoration: with it layers left storage, if there were any. */
export async function lastExpiry({ events }: Pick<Context, 'events'>, stream: StreamName): Promise<EventId | null> {
  // Nothing but expiries follows the end of a closed stream.
  const page = await events.readStream(stream, { direction: 'backwards', limit: 100 });
  const expiry = page.find((recorded) => {
    const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
    return event.type === 'LayersExpired' && endsRestoration(event);
  });
  return expiry?.id ?? null;
}
