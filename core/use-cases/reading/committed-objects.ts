import type { CommittedObjects } from '../../ports/object-database.ts';
import type { OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type ListedRepository, placeOf } from '../repositories/repositories.ts';

/** Returns the layers of a repository at a revision, in the form that the object database expects. */
export function committedObjects(
  listed: Pick<ListedRepository, 'id' | 'accountId' | 'owned'>,
  { state: { layers, shrinkEpoch, keptSinceEpoch }, revision }: Entity<OpenRepository>,
): CommittedObjects {
  return { repository: listed.id, place: placeOf(listed), revision, shrinkEpoch, keptSinceEpoch, layers };
}
