/** Composes the entities as they were, for policies that process the log behind its head. */
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import { createPastEntities, type PastEntities } from '../../core/runtime/past-entities.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import type { Foundation } from './foundation.ts';

export function composePastEntities(
  { context, pool }: Foundation,
  onFault: (what: string, cause: unknown) => void,
): PastEntities {
  const { events, entities } = context;
  const complete = (event: RecordedEvent) => withUpdatesInPlace(context, event);
  return createPastEntities({ events, entities, complete, snapshots: createPostgresSnapshots(pool), onFault });
}
