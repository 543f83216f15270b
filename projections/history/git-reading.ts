/**
 * The object database as this model reads it, its failures told apart from those of PostgreSQL.
 *
 * Must stay true: a storage that is away, or a process that failed, is one repository's trouble, never taken for
 * an outage of the database that would hold up every repository.
 */
import type { ObjectId } from '../../core/kernel/ids.ts';
import {
  type CommittedObjects,
  type ObjectDatabase,
  ObjectDatabaseError,
  type ObjectReader,
} from '../../core/ports/object-database.ts';

export class GitFault extends Error {
  override readonly name = 'GitFault';
}

export type HistoryReader = Pick<ObjectReader, 'commits' | 'lookup' | 'walk'>;

/** Opens a repository for as long as the work takes. */
export async function withReader<Result>(
  objects: Pick<ObjectDatabase, 'open'>,
  committed: CommittedObjects,
  work: (reader: HistoryReader) => Promise<Result>,
): Promise<Result> {
  const reader = await naming(() => objects.open(committed));
  try {
    return await work({
      commits: (ids) => naming(() => reader.commits(ids)),
      lookup: (ids) => naming(() => reader.lookup(ids)),
      walk: (options) => namingEach(reader.walk(options)),
    });
  } finally {
    reader.close();
  }
}

/** Whether what was asked for is not there, rather than out of reach. */
export function isMissing(error: unknown): boolean {
  return (
    error instanceof GitFault && error.cause instanceof ObjectDatabaseError && error.cause.code === 'layer-missing'
  );
}

/** Whether it may pass by itself: bytes that are wrong stay so. */
export function mayPass(error: GitFault): boolean {
  return !(error.cause instanceof ObjectDatabaseError && error.cause.code === 'layer-corrupt');
}

async function naming<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    throw faultOf(cause);
  }
}

async function* namingEach(ids: AsyncIterable<ObjectId>): AsyncGenerator<ObjectId> {
  const iterator = ids[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const next = await naming(() => iterator.next());
      if (next.done === true) break;
      yield next.value;
    }
    ended = true;
  } finally {
    // A reader that leaves early ends the process behind the walk.
    if (!ended) await iterator.return?.();
  }
}

function faultOf(cause: unknown): GitFault {
  const message = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return new GitFault(message, { cause });
}
