/**
 * Packs of a few kilobytes whose objects inflate to gigabytes: one whole object, then small deltas against it
 * (gitformat-pack(5)). git itself never writes such packs.
 */
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { deltaSize, rawEntry, rawId, rawPack } from './raw-pack.ts';

export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const PERSON = 'A U Thor <author@example.org> 1700000000 +0000';
const TREE_LINE_BYTES = 'tree \n'.length + 40;

export interface HostilePack {
  readonly bytes: Buffer;
  /** The newest commit; each commit is the first parent of the next. */
  readonly tip: ObjectId;
}

/** The bytes of a commit of the empty tree. */
export function commitBytes(parents: readonly string[], message: string): Buffer {
  const lines = [`tree ${EMPTY_TREE}`, ...parents.map((id) => `parent ${id}`)];
  return Buffer.from(`${lines.join('\n')}\nauthor ${PERSON}\ncommitter ${PERSON}\n\n${message}\n`);
}

/** The bytes of an annotated tag. */
export function tagBytes(target: string, type: string, message = 'x'): Buffer {
  return Buffer.from(`object ${target}\ntype ${type}\ntag t\ntagger ${PERSON}\n\n${message}\n`);
}

/** A delta that inserts bytes into its base at an offset and copies the rest. */
function insertingDelta(base: Buffer, at: number, inserted: Buffer): Buffer {
  if (inserted.length > 127) throw new RangeError('One instruction inserts 127 bytes at most');
  return Buffer.concat([
    deltaSize(base.length),
    deltaSize(base.length + inserted.length),
    ...copies(0, at),
    Buffer.from([inserted.length]),
    inserted,
    ...copies(at, base.length),
  ]);
}

/** Instructions that copy the base's bytes from `start` to `end`, at most 16 MiB each. */
function copies(start: number, end: number): Buffer[] {
  const instructions: Buffer[] = [];
  for (let at = start; at < end; at += 0xffffff) {
    const instruction = Buffer.alloc(8, 0xff);
    instruction.writeUInt32LE(at, 1);
    instruction.writeUIntLE(Math.min(0xffffff, end - at), 5, 3);
    instructions.push(instruction);
  }
  return instructions;
}

/**
 * A chain of commits, each with `parents` parents and a message of `messageBytes` bytes. All but the first two are
 * stored as deltas.
 */
export function packOfLargeCommits(options: {
  readonly commits: number;
  readonly parents?: number;
  readonly messageBytes?: number;
}): HostilePack {
  const { commits, parents = 1, messageBytes = 1 } = options;
  const root = commitBytes([], 'root');
  const rootId = rawId('commit', root);
  const first = commitBytes(Array<string>(parents).fill(rootId), 'm'.repeat(messageBytes));
  const firstId = rawId('commit', first);
  const entries = [
    rawEntry({ type: 'tree', bytes: Buffer.alloc(0) }),
    rawEntry({ type: 'commit', bytes: root }),
    rawEntry({ type: 'commit', bytes: first }),
  ];
  let tip = firstId;
  for (let made = 1; made < commits; made += 1) {
    const line = Buffer.from(`parent ${tip}\n`);
    const bytes = insertingDelta(first, TREE_LINE_BYTES, line);
    entries.push(rawEntry({ type: 'ref-delta', base: firstId, bytes }));
    tip = rawId('commit', Buffer.concat([first.subarray(0, TREE_LINE_BYTES), line, first.subarray(TREE_LINE_BYTES)]));
  }
  return { bytes: rawPack(entries), tip: objectId(tip) };
}

/** A file of zeros, and as many files that differ from it in three bytes: all but the first are deltas. */
export function packOfZeros(bytes: number, deltas: number): Buffer {
  const base = Buffer.alloc(bytes);
  const id = rawId('blob', base);
  const entries = [rawEntry({ type: 'blob', bytes: base })];
  for (let made = 1; made <= deltas; made += 1) {
    const inserted = Buffer.from([1, made >> 8, made & 0xff]);
    entries.push(rawEntry({ type: 'ref-delta', base: id, bytes: insertingDelta(base, 0, inserted) }));
  }
  return rawPack(entries);
}

/** A chain of annotated tags, each of the one before; the first tags the tree. `ids` lists the newest first. */
export function packOfTags(length: number): { readonly bytes: Buffer; readonly ids: readonly ObjectId[] } {
  const entries = [rawEntry({ type: 'tree', bytes: Buffer.alloc(0) })];
  const ids: ObjectId[] = [];
  for (let depth = 0; depth < length; depth += 1) {
    const bytes = tagBytes(ids[0] ?? EMPTY_TREE, depth === 0 ? 'tree' : 'tag');
    entries.push(rawEntry({ type: 'tag', bytes }));
    ids.unshift(objectId(rawId('tag', bytes)));
  }
  return { bytes: rawPack(entries), ids };
}
