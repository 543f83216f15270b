import type { AdvertisedRefs } from '../../git/wire/advertisement.ts';
import { refRuns } from '../../repository/ref-runs.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { defaultBranchRef } from './resolve-ref.ts';

/** Returns the refs of a repository as Git clients see them. */
export function advertisedRefs(repository: Pick<FoundRepository, 'entity' | 'defaultBranch'>): AdvertisedRefs {
  return { head: defaultBranchRef(repository), runs: refRuns(repository.entity.state.refs) };
}
