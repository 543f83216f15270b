/**
 * Splits bytes at line feeds.
 *
 * Invariants: at most one chunk and one line of bounded length are in memory.
 */
import type { FileLine } from '../../core/use-cases/log-files/log-file.ts';

const LINE_FEED = 10;

/**
 * Yields each line without its line feed. When the bytes after the last line feed exceed the bound, it yields them as a
 * part that has not ended, and stops. A last line without a line feed is such a part, too.
 */
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
