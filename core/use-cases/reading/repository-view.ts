/**
 * A repository at one revision of its stream, for every reader: its state, its objects, and the rows of a read model
 * that must agree with both.
 *
 * Invariants: all parts of a view are of one revision, so an answer made from them is consistent and may be cached
 * under the view's version. The caller that opens a view must close it, or the repository's objects are never evicted.
 */
import { refuse } from '../../kernel/decider.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { AtRevision } from '../../ports/history.ts';
import type { ObjectDatabase, ObjectReader } from '../../ports/object-database.ts';
import { ReadModelError, type ReadModelProgress } from '../../ports/read-models.ts';
import { repositories } from '../../repository/evolve.ts';
import type { Context } from '../../runtime/execute.ts';
import { type FoundRepository, findRepositoryById } from '../repositories/repositories.ts';
import { committedObjects } from './committed-objects.ts';

export interface RepositoryView<Rows = null> {
  readonly repository: FoundRepository;
  readonly version: string;
  readonly rows: Rows;
  /** Returns the objects of this revision. The first call opens them. */
  objects(): Promise<ObjectReader>;
  /** Idempotent. */
  close(): void;
}

/**
 * Returns a name for the repository at this revision. While it is the same, every answer made from the repository's
 * branches, tags, commits and contents is the same too. The last event stands for the revision: after a failover that
 * lost the log's tail, another event may have that revision.
 */
export function versionOf({ id, entity }: Pick<FoundRepository, 'id' | 'entity'>): string {
  return `${id}-${entity.lastEventId}`;
}

export interface ObjectsContext {
  readonly objects: Pick<ObjectDatabase, 'open'>;
}

/** Opens a view of the repository at the revision that the caller found. */
export function openView(context: ObjectsContext, repository: FoundRepository): RepositoryView {
  return makeView(context, repository, null);
}

export interface RowsContext extends Context, ObjectsContext {
  readonly readModels: ReadModelProgress;
}

export interface RowsQuery<Rows extends AtRevision> {
  /** Returns true if the entity alone shows that there are no rows. Then the read model is not queried. */
  readonly isEmpty: (repository: FoundRepository) => boolean;
  readonly read: (repository: FoundRepository) => Promise<Rows | null>;
}

/**
 * Each try after the first means that a push was committed between the two reads. Internal: only pushes between as many
 * reads in a row reach it.
 */
const TRIES_MAX = 10;

/**
 * Opens a view with rows of a read model. Its revision is later than the one the caller found if the model is ahead of
 * that. Rows are null if there are none. Refused with `repository-not-found` if the repository has been deleted.
 * Throws `ReadModelError` if the model and the entity do not reach the same revision.
 */
export async function openViewWithRows<Rows extends AtRevision>(
  context: RowsContext,
  known: FoundRepository,
  query: RowsQuery<Rows>,
): Promise<RepositoryView<Rows | null> | { readonly refused: Refusal }> {
  let repository = known;
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    if (query.isEmpty(repository)) return makeView(context, repository, null);
    await context.readModels.caughtUp(repository.entity.position);
    const rows = await query.read(repository);
    if (rows !== null && rows.revision === repository.entity.revision) return makeView(context, repository, rows);
    await context.entities.reload(repositories, repository.id);
    const again = await findRepositoryById(context, repository.accountId, repository.id);
    if (again === null) return refuse({ code: 'repository-not-found' });
    repository = again;
  }
  throw new ReadModelError('read-model-behind', `The model and repository ${known.id} do not reach the same revision`);
}

/** Calls `use` with the view and closes it afterwards, also if `use` throws. */
export async function closing<Rows, Result>(
  view: RepositoryView<Rows>,
  use: (view: RepositoryView<Rows>) => Promise<Result> | Result,
): Promise<Result> {
  try {
    return await use(view);
  } finally {
    view.close();
  }
}

function makeView<Rows>({ objects }: ObjectsContext, repository: FoundRepository, rows: Rows): RepositoryView<Rows> {
  let opened: Promise<ObjectReader> | null = null;
  let isClosed = false;
  return {
    repository,
    version: versionOf(repository),
    rows,
    async objects() {
      if (isClosed) throw new TypeError(`The view of repository ${repository.id} was closed`);
      opened ??= objects.open(committedObjects(repository, repository.entity));
      return opened;
    },
    close() {
      isClosed = true;
      // An error of opening the objects has already rejected the promise that `objects` returned.
      opened?.then(
        (reader) => reader.close(),
        () => undefined,
      );
    },
  };
}
