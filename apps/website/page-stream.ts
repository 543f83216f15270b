/**
 * Sends a long page in pieces, each made when the one before is on its way.
 *
 * Invariants: of what is made while it is sent, one piece is in memory, beside what it is made from. Others have the
 * event loop between two pieces. A page that nobody reads on with is not made any further.
 */
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Html } from './layout/html.ts';

/** Returns the memory that the page holds while it is sent; null for one that is whole already. */
export function heldBytesOf(page: Html): number | null {
  const later = page.parts().filter((part) => typeof part !== 'string');
  return later.length === 0 ? null : later.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
}

export function pageStream(page: Html): Readable {
  return Readable.from(piecesOf(page), { objectMode: false, highWaterMark: 1 });
}

async function* piecesOf(page: Html): AsyncGenerator<Buffer> {
  for (const part of page.parts()) {
    if (typeof part === 'string') {
      yield Buffer.from(part);
      continue;
    }
    for (const piece of part.make()) {
      await nextTurn();
      const markup = piece.markup();
      if (markup !== '') yield Buffer.from(markup);
    }
  }
}
