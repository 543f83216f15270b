/** Repositories as they stood at a moment, over the ports of a test. */
import type { Entities } from '../../core/runtime/entities.ts';
import { createPastEntities, type PastEntities } from '../../core/runtime/past-entities.ts';
import {
  createPastRepositories,
  type PastRepositories,
  type PastRepositoriesContext,
} from '../../core/use-cases/as-of/repository-as-of.ts';
import { createMemorySnapshots } from './memory/snapshots.ts';

export const TEST_RETENTION_MS = 30 * 24 * 60 * 60_000;

export function testPastRepositories(
  context: Omit<PastRepositoriesContext, 'past' | 'retentionMs'> & { readonly entities: Entities },
): PastRepositories {
  return createPastRepositories({ ...context, past: testPastEntities(context), retentionMs: TEST_RETENTION_MS });
}

export function testPastEntities({
  events,
  entities,
}: Pick<PastRepositoriesContext, 'events'> & { readonly entities: Entities }): PastEntities {
  return createPastEntities({
    ...{ events, entities, snapshots: createMemorySnapshots() },
    complete: async (event) => event,
    onFault: (_what, cause) => {
      throw cause;
    },
  });
}
