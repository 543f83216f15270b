import type { OwnedRepository } from '../../account/repositories/state.ts';
import type { CommittedObjects } from '../../ports/object-database.ts';
import type { OpenRepository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';

/** Returns the layers of a repository at a revision, in the form that the object database expects. */
export function committedObjects(
  { id: repository, storageBucketId }: Pick<OwnedRepository, 'id' | 'storageBucketId'>,
  { state: { layers, shrinkEpoch, keptSinceEpoch }, revision }: Entity<OpenRepository>,
): CommittedObjects {
  return { repository, storageBucketId, revision, shrinkEpoch, keptSinceEpoch, layers };
}
