/**
 * Bytes cut at their line feeds.
 *
 * Must stay true: no more than one chunk and one line of bounded length are held.
 */
import type { FileLine } from '../../core/use-cases/log-files/log-file.ts';

const LINE_FEED = 10;

/** A line beyond the bound is given as a part that is longer than it, and is the last one given. */
export async function* fileLines(chunks: AsyncIterable<Uint8Array>, lineBytesMax: number): AsyncGenerator<FileLine> {
  let begun: Uint8Array[] = [];
  let begunBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      begun.push(chunk.subarray(start, end));
      yield { bytes: Buffer.concat(begun), ended: true };
      begun = [];
      begunBytes = 0;
      start = end + 1;
    }
    begun.push(chunk.subarray(start));
    begunBytes += chunk.length - start;
    if (begunBytes > lineBytesMax) break;
  }
  if (begunBytes > 0) yield { bytes: Buffer.concat(begun), ended: false };
}
