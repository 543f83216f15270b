/** What shows the past of accounts: entities, states and refs as of a moment. */
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import { type AccountStates, createAccountStates } from '../../core/use-cases/auditing/account-states.ts';
import { createRepositoryRefs, type RepositoryRefs } from '../../core/use-cases/auditing/repository-refs.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import type { Foundation } from './foundation.ts';
import { composePastEntities } from './past-entities.ts';

export interface ComposedAccountStates {
  readonly accountStates: AccountStates;
  readonly repositoryRefs: RepositoryRefs;
}

export function composeAccountStates(
  foundation: Foundation,
  readModels: AccountLogReader,
  onFault: (what: string, cause: unknown) => void,
): ComposedAccountStates {
  const { context, pool } = foundation;
  const past = composePastEntities(foundation, onFault);
  const complete = (event: RecordedEvent) => withUpdatesInPlace(context, event);
  const snapshots = createPostgresSnapshots(pool);
  return {
    accountStates: createAccountStates({ ...context, readModels, past, snapshots, complete, onFault }),
    repositoryRefs: createRepositoryRefs({ ...context, readModels, past }),
  };
}
