/**
 * Verifies a file, and reads the files that it is verified with.
 *
 * Invariants: one line is in memory at a time, however long the file is. A byte that is no UTF-8 is a fault of its
 * line, and so is a last line without its line feed.
 */
import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type Checkpoint, parseCheckpoint, parseKeys, type VerifierKey } from './checkpoint.ts';
import { createVerifier, LINE_LENGTH_MAX, type Verified, VerifyError, type VerifyOptions } from './verify.ts';

const CHUNK_BYTES = 1024 * 1024;
/** A character of a line takes up to three bytes. */
const LINE_BYTES_MAX = 3 * LINE_LENGTH_MAX;
const LINE_FEED = 10;

/** Throws VerifyError for the first fault, and the file system's error for a file that cannot be read. */
export async function verifyFile(file: string, options: VerifyOptions): Promise<Verified> {
  return verifyChunks(createReadStream(file, { highWaterMark: CHUNK_BYTES }), options);
}

export async function verifyChunks(chunks: AsyncIterable<Buffer>, options: VerifyOptions): Promise<Verified> {
  const verifier = createVerifier(options);
  let count = 0;
  let begun: Buffer[] = [];
  let begunBytes = 0;
  const take = (line: Buffer): void => {
    count += 1;
    if (!isUtf8(line)) throw new VerifyError(count, 'it is not UTF-8');
    verifier.line(line.toString('utf8'));
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const rest = chunk.subarray(start, end);
      take(begun.length === 0 ? rest : Buffer.concat([...begun, rest]));
      [begun, begunBytes] = [[], 0];
      start = end + 1;
    }
    if (start < chunk.length) begun.push(chunk.subarray(start));
    begunBytes += chunk.length - start;
    if (begunBytes > LINE_BYTES_MAX)
      throw new VerifyError(count + 1, `it is longer than ${LINE_LENGTH_MAX} characters`);
  }
  if (begun.length > 0) throw new VerifyError(count + 1, 'it does not end in a line feed: the export was cut off');
  return verifier.end();
}

/** Reads a file of verifier keys. Throws SyntaxError for one that is not. */
export async function readKeys(file: string): Promise<readonly VerifierKey[]> {
  const keys = parseKeys(await readFile(file, 'utf8'));
  if (keys.length === 0) throw new SyntaxError('it holds no key');
  return keys;
}

/** Reads a checkpoint that was kept. Throws SyntaxError for a file that is not. */
export async function readCheckpoint(file: string): Promise<Checkpoint> {
  const checkpoint = parseCheckpoint(await readFile(file, 'utf8'));
  if (checkpoint === null) throw new SyntaxError('it is no checkpoint of an account');
  return checkpoint;
}
