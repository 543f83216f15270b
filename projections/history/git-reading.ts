/**
 * The object database as this model reads it; its failures become `GitFault`s, distinct from those of PostgreSQL.
 *
 * Invariants: an unreachable layer storage, or a failed git process, is a fault of one repository. It is never
 * taken for an outage of the database, which would make every repository wait.
 */
import type { ObjectId } from '../../core/kernel/ids.ts';
import {
  type CommittedObjects,
  isBeyondBounds,
  type ObjectDatabase,
  ObjectDatabaseError,
  type ObjectReader,
} from '../../core/ports/object-database.ts';
import { TooMuchWork } from './work-bounds.ts';

export class GitFault extends Error {
  override readonly name = 'GitFault';
}

export type HistoryReader = Pick<ObjectReader, 'commits' | 'lookup' | 'walk'>;

/** Opens a repository for the duration of the work. Throws `TooMuchWork` if reading takes longer than `spanMs`. */
export async function withReader<Result>(
  objects: Pick<ObjectDatabase, 'open'>,
  committed: CommittedObjects,
  spanMs: number,
  work: (reader: HistoryReader) => Promise<Result>,
): Promise<Result> {
  const signal = AbortSignal.timeout(spanMs);
  try {
    return await readUntil(objects, committed, signal, work);
  } catch (error) {
    if (!signal.aborted || !(error instanceof GitFault)) throw error;
    throw new TooMuchWork(`Its objects take more than ${spanMs} ms to be read`, { cause: error });
  }
}

async function readUntil<Result>(
  objects: Pick<ObjectDatabase, 'open'>,
  committed: CommittedObjects,
  signal: AbortSignal,
  work: (reader: HistoryReader) => Promise<Result>,
): Promise<Result> {
  const reader = await withGitFault(() => openUnlessAborted(objects, committed, signal));
  const inTime = <Answer>(read: () => Promise<Answer>): Promise<Answer> =>
    withGitFault(async () => {
      signal.throwIfAborted();
      return read();
    });
  try {
    return await work({
      commits: (ids) => inTime(() => reader.commits(ids)),
      lookup: (ids) => inTime(() => reader.lookup(ids)),
      walk: (options) => withGitFaults(reader.walk({ ...options, signal })),
    });
  } finally {
    reader.close();
  }
}

/**
 * Opens a repository. If the signal aborts first, the opening continues for the cache's sake and its reader is closed.
 */
async function openUnlessAborted(
  objects: Pick<ObjectDatabase, 'open'>,
  committed: CommittedObjects,
  signal: AbortSignal,
): Promise<ObjectReader> {
  signal.throwIfAborted();
  const opening = objects.open(committed);
  const { promise: late, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([opening, late]);
  } catch (error) {
    opening.then(
      (reader) => reader.close(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

/** Returns whether the layer does not exist, as opposed to being unreachable. */
export function isMissing(error: unknown): boolean {
  return (
    error instanceof GitFault && error.cause instanceof ObjectDatabaseError && error.cause.code === 'layer-missing'
  );
}

/**
 * Returns whether a later try may succeed: corrupt bytes stay corrupt, and objects beyond the limits stay too large.
 */
export function mayPass(error: GitFault): boolean {
  return (
    !(error.cause instanceof ObjectDatabaseError && error.cause.code === 'layer-corrupt') &&
    !isBeyondBounds(error.cause)
  );
}

async function withGitFault<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    throw faultOf(cause);
  }
}

async function* withGitFaults(ids: AsyncIterable<ObjectId>): AsyncGenerator<ObjectId> {
  const iterator = ids[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const next = await withGitFault(() => iterator.next());
      if (next.done === true) break;
      yield next.value;
    }
    ended = true;
  } finally {
    // A consumer that stops early ends the git process behind the walk.
    if (!ended) await iterator.return?.();
  }
}

function faultOf(cause: unknown): GitFault {
  const message = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause);
  return new GitFault(message, { cause });
}
