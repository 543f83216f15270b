/**
 * Rebuilds an account from an export in a file: what `strata audit replay` is made of.
 *
 * Invariants: it reads the file and nothing else, line by line: memory grows with the account, not with its log. It
 * runs on Node 20, and only core is in it: the code by which the service itself folds the log.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { accountStateText, madeAccount } from '../../core/audit/account-state.ts';
import { replayExport } from '../../core/audit/replay.ts';
import { parseTimestamp, type Timestamp } from '../../core/kernel/ids.ts';

export interface Replayed {
  /** The number of entries that the state is made of. */
  readonly sequence: number;
  /** The log time of the last of them. */
  readonly logTime: string | null;
  /** The SHA-256 of the state without its digest, in hex. */
  readonly digest: string;
  /** The SHA-256 of the whole text that the API answers, in hex. */
  readonly textDigest: string;
}

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** Returns an RFC 3339 time in UTC, as the service writes it; null for any other text. */
export function parseMoment(text: string): Timestamp | null {
  const ms = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : parseTimestamp(new Date(ms).toISOString());
}

/**
 * Returns what the account was at the moment, or at the end of the file for null; null if there was no account yet.
 * `write` gets the text of the state in parts. Rejects with an error that names the line at fault.
 */
export async function replayFile(
  file: string,
  at: Timestamp | null,
  write: (text: string) => void,
): Promise<Replayed | null> {
  const fold = await replayExport({ [Symbol.asyncIterator]: () => linesOf(file) }, at, { digest, nextTurn });
  if (madeAccount(fold) === null) return null;
  const whole = createHash('sha256');
  let tail = '';
  const sources = { digest, nextTurn, refsOf };
  for await (const piece of accountStateText(fold, sources)) {
    whole.update(piece, 'utf8');
    write(piece);
    tail = piece;
  }
  const { sequence, logTime } = fold;
  return { sequence, logTime, digest: digestIn(tail) ?? '', textDigest: whole.digest('hex') };
}

/** Returns the digest that the end of a state names; null for another text. */
export function digestIn(tail: string): string | null {
  return /,"digest":"([0-9a-f]{64})"\}$/.exec(tail)?.[1] ?? null;
}

const digest = {
  sha256: (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex'),
  startSha256: () => {
    const hash = createHash('sha256');
    return { add: (bytes: Uint8Array): void => void hash.update(bytes), hex: (): string => hash.digest('hex') };
  },
};

async function refsOf(): Promise<never> {
  throw new TypeError('A replay keeps all refs');
}

/** Twice the largest entry with its openings. Internal: only the operator replays a file. */
const LINE_BYTES_MAX = 8 * 1024 * 1024;

/** Only a line feed ends a line: JSON may hold the other characters that Node's own reader splits at. */
async function* linesOf(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Buffer[] = [];
  let length = 0;
  const source: AsyncIterable<Buffer> = createReadStream(file);
  for await (const chunk of source) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      yield decoder.decode(Buffer.concat([...parts, chunk.subarray(from, end)]));
      from = end + 1;
      parts = [];
      length = 0;
    }
    parts.push(chunk.subarray(from));
    length += chunk.length - from;
    if (length > LINE_BYTES_MAX) throw new TypeError('A line of the file is longer than any entry');
  }
  if (length > 0) yield decoder.decode(Buffer.concat(parts));
}
