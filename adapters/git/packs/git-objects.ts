/**
 * Reads objects by git itself: large blobs as streams, and objects beyond the bounds of reading in process.
 *
 * Invariants: git gets only full ids that an index holds, since each miss makes it search every pack again.
 */
import type { ObjectType } from '../../../core/git/objects.ts';
import { OBJECT_ID_PATTERN, type ObjectId } from '../../../core/kernel/ids.ts';
import { commandError, type Git, type GitCommand, type ObjectView } from '../process/git-commands.ts';
import type { GitObjects } from './object-source.ts';
import type { StoredObject } from './pack-file.ts';

/** Larger objects are only streamed. Internal: what reads objects whole takes much smaller ones only. */
const WHOLE_OBJECT_BYTES_MAX = 128 * 1024 * 1024;

export function createGitObjects(git: Git, view: ObjectView): GitObjects {
  return {
    info: async (id) => {
      const command: GitCommand = { args: ['cat-file', '--batch-check'], view };
      let text = '';
      for await (const chunk of git.stream(command, lines([id]))) text += chunk.toString('latin1');
      return parseHeader(id, text.trimEnd());
    },
    read: (id) => readWhole(git, view, id),
  };
}

async function readWhole(git: Git, view: ObjectView, id: ObjectId): Promise<StoredObject> {
  const chunks: Buffer[] = [];
  let header: { readonly type: ObjectType; readonly sizeBytes: number } | null = null;
  for await (const part of batch(git, view, id)) {
    if (!Buffer.isBuffer(part)) {
      header = part;
      if (part.sizeBytes > WHOLE_OBJECT_BYTES_MAX) throw new RangeError(`Object ${id} is too large to be read whole`);
    } else chunks.push(part);
  }
  if (header === null) throw new TypeError(`git cat-file printed nothing for ${id}`);
  return { type: header.type, bytes: Buffer.concat(chunks) };
}

export interface BlobRange extends Pick<GitCommand, 'signal' | 'pacing'> {
  readonly start: number;
  readonly end: number;
}

/** The bytes of a blob from `start` to `end`, `end` not included, in constant memory. */
export async function* streamBlob(
  git: Git,
  view: ObjectView,
  id: ObjectId,
  { start, end, ...running }: BlobRange,
): AsyncGenerator<Buffer> {
  let at = 0;
  for await (const part of batch(git, view, id, running)) {
    if (!Buffer.isBuffer(part)) continue;
    const wanted = part.subarray(Math.max(0, start - at), Math.max(0, end - at));
    at += part.length;
    if (wanted.length > 0) yield wanted;
    if (at >= end) return;
  }
}

/** Yields what `cat-file --batch` prints for one object: its header, then its bytes. */
async function* batch(
  git: Git,
  view: ObjectView,
  id: ObjectId,
  running: Pick<GitCommand, 'signal' | 'pacing'> = {},
): AsyncGenerator<Buffer | { readonly type: ObjectType; readonly sizeBytes: number }> {
  const command: GitCommand = { args: ['cat-file', '--batch', '--buffer'], view, ...running };
  let head = Buffer.alloc(0);
  let left: number | null = null;
  for await (const chunk of git.stream(command, lines([id]))) {
    let bytes = chunk;
    if (left === null) {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\n');
      if (end < 0) continue;
      const header = parseHeader(id, head.toString('latin1', 0, end));
      yield header;
      left = header.sizeBytes;
      bytes = head.subarray(end + 1);
    }
    // git prints a line feed after the object.
    const content = bytes.subarray(0, left);
    left -= content.length;
    if (content.length > 0) yield content;
  }
  if (left !== 0) throw commandError(command, ENDED_EARLY);
}

const ENDED_EARLY = {
  code: 0,
  signal: null,
  killed: 'no',
  stderr: 'its output ended early',
  stdout: null,
  outgrown: false,
} as const;
const HEADER = new RegExp(`^(${OBJECT_ID_PATTERN}) (commit|tree|blob|tag) (\\d+)$`);

function parseHeader(id: ObjectId, line: string): { readonly type: ObjectType; readonly sizeBytes: number } {
  const [, found, type, size] = HEADER.exec(line) ?? [];
  if (found !== id || size === undefined) throw new TypeError(`git cat-file printed for ${id}: ${line}`);
  return { type: type as ObjectType, sizeBytes: Number(size) };
}

/** Yields each text on a line, as git's --stdin options read them. */
export async function* lines(texts: Iterable<string>): AsyncGenerator<Buffer> {
  let batched = '';
  for (const text of texts) {
    batched += `${text}\n`;
    if (batched.length < 65_536) continue;
    yield Buffer.from(batched);
    batched = '';
  }
  if (batched !== '') yield Buffer.from(batched);
}
