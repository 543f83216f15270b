import type { AdvertisedRefs } from '../../git/wire/advertisement.ts';
import type { RefsView } from '../../ports/object-database.ts';
import { refRuns } from '../../repository/ref-runs.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { defaultBranchRef } from './resolve-ref.ts';

/** Returns the refs of a repository as Git clients see them. */
export function advertisedRefs(repository: Pick<FoundRepository, 'entity' | 'defaultBranch'>): AdvertisedRefs {
  return { head: defaultBranchRef(repository), runs: refRuns(repository.entity.state.refs) };
}

/**
 * Names the refs without listing them. The last event determines them, and the default branch `HEAD`. A revision may
 * belong to another event after a failover that lost the log's tail.
 */
export function refsKeyOf({ entity, defaultBranch }: Pick<FoundRepository, 'entity' | 'defaultBranch'>): string {
  return `${entity.lastEventId} ${defaultBranch}`;
}

/** Returns the refs in the form in which git reads them. */
export function refsViewOf(repository: Pick<FoundRepository, 'entity' | 'defaultBranch'>): RefsView {
  return { key: refsKeyOf(repository), ...advertisedRefs(repository) };
}
