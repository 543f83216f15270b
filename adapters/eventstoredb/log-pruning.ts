/**
 * Pruning on EventStoreDB: a stream gets a tombstone, and the server's own scavenge frees its space.
 *
 * Invariants (core/ports/log-pruning.ts): the stream is read whole before, and the tombstone names the revision that
 * was read, so a stream that has grown since stays. It can be repeated after an answer that was lost. No tombstone is
 * ever set on a stream of the record.
 */
import { StreamDeletedError, WrongExpectedVersionError } from '@eventstore/db-client';
import { categoryOf, type RecordedEvent, type StreamName } from '../../core/kernel/envelope.ts';
import type { Timestamp } from '../../core/kernel/ids.ts';
import { type LogPruning, PRUNABLE_CATEGORIES, type PrunableStream } from '../../core/ports/log-pruning.ts';
import { NoAnswerError } from './failures.ts';
import type { LogReader } from './log-reader.ts';
import { retryRepeatable } from './retry.ts';
import { answerWithin, type Session, type Sessions } from './sessions.ts';

export interface PruningOptions {
  readonly sessions: Sessions;
  readonly reader: LogReader;
  /** How long the server may take to set a tombstone. */
  readonly attemptSpanMs: number;
  /** How long a failed call is retried. */
  readonly retrySpanMs: number;
}

const PAGE_EVENTS = 100;

export function createEventStoreDbLogPruning(options: PruningOptions): LogPruning {
  const { sessions, retrySpanMs } = options;
  return {
    async prune(wanted, olderThan) {
      if (!PRUNABLE_CATEGORIES.includes(categoryOf(wanted.stream))) {
        throw new TypeError(`The stream ${wanted.stream} is not of an operational category`);
      }
      return retryRepeatable(retrySpanMs, 'read and delete streams', async () => {
        const session = await sessions.open();
        if (!(await mayGo(options, session, wanted, olderThan))) return false;
        return setTombstone(options, session, wanted);
      });
    },
  };
}

async function mayGo(
  { reader }: PruningOptions,
  session: Session,
  { stream, lastRevision }: PrunableStream,
  olderThan: Timestamp,
): Promise<boolean> {
  const [last] = await reader.readStream(session, stream, { direction: 'backwards', limit: 1 });
  if (last === undefined || last.revision !== lastRevision || last.occurredAt >= olderThan) return false;
  return !(await holdsRecord(reader, session, stream)) && (await reader.hasRecordBehind(session, last.position));
}

async function holdsRecord(reader: LogReader, session: Session, stream: StreamName): Promise<boolean> {
  for (let from = 0; ; ) {
    const range = { direction: 'forwards', from, limit: PAGE_EVENTS } as const;
    const page: readonly RecordedEvent[] = await reader.readStream(session, stream, range);
    if (page.some(({ isRecord }) => isRecord)) return true;
    if (page.length < PAGE_EVENTS) return false;
    from += page.length;
  }
}

async function setTombstone(
  { sessions, attemptSpanMs }: PruningOptions,
  session: Session,
  { stream, lastRevision }: PrunableStream,
): Promise<boolean> {
  try {
    const call = session.client.tombstoneStream(stream, {
      expectedRevision: BigInt(lastRevision),
      requiresLeader: true,
    });
    await answerWithin(session, attemptSpanMs, call);
    return true;
  } catch (error) {
    // It grew, or another node was faster.
    if (error instanceof WrongExpectedVersionError || error instanceof StreamDeletedError) return false;
    if (error instanceof NoAnswerError) sessions.discard(session, 'a tombstone got no answer');
    throw error;
  }
}
