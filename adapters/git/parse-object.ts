/** Commits and trees from their bytes: git-cat-file(1), gitformat of objects. Broken headers are read as git reads them. */
import { type ObjectId, objectId, parseObjectId } from '../../core/kernel/ids.ts';
import type { Commit, Signature, TreeEntry } from '../../core/ports/object-database.ts';

/** Headers up to the first empty line, then the message; text that is not UTF-8 is decoded with replacement. */
export function parseCommit(id: ObjectId, bytes: Buffer): Commit {
  const end = bytes.indexOf('\n\n');
  const head = (end === -1 ? bytes : bytes.subarray(0, end)).toString('utf8');
  const message = end === -1 ? '' : bytes.subarray(end + 2).toString('utf8');
  const parents: ObjectId[] = [];
  let tree: ObjectId | null = null;
  let author: Signature | null = null;
  let committer: Signature | null = null;
  for (const line of head.split('\n')) {
    const space = line.indexOf(' ');
    const value = line.slice(space + 1);
    switch (line.slice(0, Math.max(space, 0))) {
      case 'tree':
        tree ??= parseObjectId(value);
        break;
      case 'parent':
        parents.push(objectId(value));
        break;
      case 'author':
        author ??= parseSignature(value);
        break;
      case 'committer':
        committer ??= parseSignature(value);
        break;
    }
  }
  if (tree === null) throw new TypeError(`The commit ${id} names no tree`);
  return { id, tree, parents, author: author ?? NOBODY, committer: committer ?? NOBODY, message };
}

const NOBODY: Signature = { name: '', email: '', seconds: 0, offsetMinutes: 0 };

/** `Name <email> seconds zone`. A date git cannot read counts as 0. */
function parseSignature(text: string): Signature {
  const open = text.indexOf('<');
  const close = text.lastIndexOf('>');
  if (open === -1 || close < open) return { ...NOBODY, name: text.trim() };
  const [, seconds = '0', sign = '+', hours = '0', minutes = '0'] =
    /^\s*(\d{1,15})(?:\s+([+-])(\d{2})(\d{2}))?/.exec(text.slice(close + 1)) ?? [];
  const offset = Number(hours) * 60 + Number(minutes);
  return {
    name: text.slice(0, open).trim(),
    email: text.slice(open + 1, close).trim(),
    seconds: Number(seconds),
    offsetMinutes: sign === '-' ? -offset : offset,
  };
}

const SPACE = 0x20;
const ID_BYTES = 20;

/** `<mode> <name>\0<20 bytes of id>`, in git's order. */
export function parseTree(bytes: Buffer): readonly TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(SPACE, at);
    const end = bytes.indexOf(0, space);
    if (space === -1 || end === -1) throw new TypeError('A tree is cut off');
    const mode = bytes.toString('latin1', at, space).padStart(6, '0');
    const id = objectId(bytes.toString('hex', end + 1, end + 1 + ID_BYTES));
    entries.push({ name: bytes.subarray(space + 1, end), mode, id });
    at = end + 1 + ID_BYTES;
  }
  return entries;
}
