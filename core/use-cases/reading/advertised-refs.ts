import type { AdvertisedRefs } from '../../git/wire/advertisement.ts';
import { refRuns } from '../../repository/ref-runs.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

/** Returns the refs of a repository as Git clients see them. */
export function advertisedRefs({
  entity,
  defaultBranch,
}: Pick<FoundRepository, 'entity' | 'defaultBranch'>): AdvertisedRefs {
  return { head: `refs/heads/${defaultBranch}`, runs: refRuns(entity.state.refs) };
}
