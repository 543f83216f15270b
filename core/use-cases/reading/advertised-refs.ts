import type { AdvertisedRefs } from '../../git/wire/advertisement.ts';
import { sortedRefNames } from '../../repository/state.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

/** Returns the refs of a repository as Git clients see them. */
export function advertisedRefs({
  entity,
  defaultBranch,
}: Pick<FoundRepository, 'entity' | 'defaultBranch'>): AdvertisedRefs {
  const { refs } = entity.state;
  const listed = sortedRefNames(refs).flatMap((name) => {
    const ref = refs.get(name);
    return ref === undefined ? [] : [{ name, id: ref.id, peeled: ref.peeled }];
  });
  return { head: `refs/heads/${defaultBranch}`, refs: listed };
}
