/**
 * What git makes for a browser: an archive, or the text of a commit.
 *
 * Invariants: nothing in it runs on this site's origin. Every byte sent counts against the account's transfer quota, and
 * git does not wait for a browser that reads too slowly. However the answer ends, what it reads from is closed.
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

/** What a page without scripts or forms may do. */
const INERT = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'private, no-cache',
};

/** Counts what git makes as the API does, beyond what a page costs. Returns what to answer instead, if anything. */
export async function refusedMaking(asked: PageRequest): Promise<SiteAnswer | null> {
  const { context, repository, visit } = asked;
  const exceeded = context.callers.charge(visit.person.principal, REQUEST_POINTS.costly - REQUEST_POINTS.page);
  if (exceeded !== null) return tooOften(visit, exceeded);
  const hasRoom = await context.transferBudget.hasRoom(repository.accountId, repository.account.plan);
  return hasRoom ? null : showRefusal(asked, { code: 'transfer-quota-reached' });
}

export function showMade(
  { context, repository, visit }: PageRequest,
  { chunks, isMade, close }: MadeByGit,
  headers: Readonly<Record<string, string>>,
): SiteAnswer {
  const counter = { bytes: 0 };
  const pace = { ...ARCHIVE_PACE, isOver: isMade };
  const watched = watchPace(counted(chunks(), counter), pace, () => stream.destroy(new ReaderTooSlow()));
  const stream = Readable.from(watched, { objectMode: false });
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', () => {
    close();
    const { address, person } = visit;
    countSent(context, repository, { principal: person.principal, address, sentBytes: counter.bytes });
  });
  return showContent(stream, { ...INERT, ...headers });
}

async function* counted(chunks: AsyncIterable<Uint8Array>, counter: { bytes: number }): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    counter.bytes += chunk.length;
    yield chunk;
  }
}
