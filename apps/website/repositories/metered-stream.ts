/**
 * What a browser gets of a repository that is no page: the bytes of a file, and what git makes, which is an archive or
 * the text of a commit.
 *
 * Invariants: nothing in it runs on this site's origin. Every byte sent counts against the account's transfer quota,
 * and git does not wait for a browser that reads too slowly. However the answer ends, what it reads from is closed.
 */
import { Readable } from 'node:stream';
import { REQUEST_POINTS } from '../../../core/kernel/limits.ts';
import { ReaderTooSlow } from '../../../core/kernel/reader-too-slow.ts';
import { ARCHIVE_PACE, watchPace } from '../../front-door/reader-pace.ts';
import { countSent } from '../../front-door/transfer-budget.ts';
import { type SiteAnswer, showContent } from '../layout/answer.ts';
import { tooOften } from '../layout/problems.ts';
import { type PageRequest, showRefusal } from './page-request.ts';

export interface MadeByGit {
  readonly chunks: () => AsyncIterable<Uint8Array>;
  /** Whether git has made all of it. */
  readonly isMade: () => boolean;
  readonly close: () => void;
}

/** The headers of bytes in which nothing may run. */
export const INERT = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'private, no-cache',
};

/** Returns what to answer where the account has no transfer left; else null. */
export async function refusedTransfer(asked: PageRequest): Promise<SiteAnswer | null> {
  const { context, repository } = asked;
  const hasRoom = await context.transferBudget.hasRoom(repository.accountId, repository.account.plan);
  return hasRoom ? null : showRefusal(asked, { code: 'transfer-quota-reached' });
}

/** Counts what git makes as the API does, beyond what a page costs. Returns what to answer instead, if anything. */
export async function refusedMaking(asked: PageRequest): Promise<SiteAnswer | null> {
  const { context, visit } = asked;
  const exceeded = context.callers.charge(visit.person.principal, REQUEST_POINTS.costly - REQUEST_POINTS.page);
  return exceeded === null ? refusedTransfer(asked) : tooOften(visit, exceeded);
}

export function showMade(
  asked: PageRequest,
  { chunks, isMade, close }: MadeByGit,
  headers: Readonly<Record<string, string>>,
): SiteAnswer {
  const pace = { ...ARCHIVE_PACE, isOver: isMade };
  const watched = watchPace(chunks(), pace, () => stream.destroy(new ReaderTooSlow()));
  const stream = meteredStream(asked, watched, close);
  return showContent(stream, { ...INERT, ...headers });
}

/** Counts the bytes that are read, and closes what they are read from at the end. */
export function meteredStream(
  { context, repository, visit }: PageRequest,
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  close: () => void,
): Readable {
  const counter = { bytes: 0 };
  const stream = Readable.from(counted(chunks, counter), { objectMode: false });
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', () => {
    close();
    const { address, person } = visit;
    countSent(context, repository, { principal: person.principal, address, sentBytes: counter.bytes });
  });
  return stream;
}

async function* counted(
  chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  counter: { bytes: number },
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    counter.bytes += chunk.length;
    yield chunk;
  }
}
