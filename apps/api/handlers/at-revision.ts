/**
 * Reads of a read model that must agree with the entity in memory.
 *
 * Must stay true: rows and entity are of one revision of the repository's stream, so an answer made from both
 * is of one moment, and may be kept under that revision.
 */
import { type AtRevision, ReadModelError } from '../../../core/ports/read-models.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { type FoundRepository, findRepositoryById } from '../../../core/use-cases/accounts/repositories.ts';
import type { ApiServices } from '../services.ts';

export interface ReadAtRevision<Rows> {
  readonly repository: FoundRepository;
  /** Null: the entity says that there is nothing to read. */
  readonly rows: Rows | null;
}

/** Each try more means that a push came between the two reads. */
const TRIES_MAX = 10;

/** Null when the repository was deleted meanwhile. Throws `ReadModelError` when the model does not come along. */
export async function readAtRevision<Rows extends AtRevision>(
  context: ApiServices,
  known: FoundRepository,
  options: {
    readonly isEmpty: (repository: FoundRepository) => boolean;
    readonly read: (repository: FoundRepository) => Promise<Rows | null>;
  },
): Promise<ReadAtRevision<Rows> | null> {
  let repository = known;
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    if (options.isEmpty(repository)) return { repository, rows: null };
    await context.readModels.caughtUp(repository.entity.position);
    const rows = await options.read(repository);
    if (rows !== null && rows.revision === repository.entity.revision) return { repository, rows };
    await context.entities.reload(repositories, repository.id);
    const again = await findRepositoryById(context, repository.accountId, repository.id);
    if (again === null) return null;
    repository = again;
  }
  throw new ReadModelError('read-model-behind', `The model and repository ${known.id} do not come together`);
}
