/**
 * Recognizes commits and trees that are as plain as nearly all are, so that git need not check them (fsck.c in git).
 *
 * Invariants: what is plain has nothing that git-fsck(1) reports, not even as information. Whatever is unusual,
 * though git may take it, is not plain.
 */
import type { ObjectType } from '../../../core/git/objects.ts';
import {
  OBJECT_ID_BYTES,
  OBJECT_ID_DIGITS,
  OBJECT_ID_PATTERN,
  type ObjectId,
  objectId,
} from '../../../core/kernel/ids.ts';

/** An object that another one refers to, which must exist with this type. */
export interface Link {
  readonly id: ObjectId;
  readonly type: ObjectType;
}

export interface PlainObject {
  readonly links: readonly Link[];
  /** Blobs whose bytes have rules of their own. */
  readonly contents: readonly PlainContent[];
}

/** A blob that has to be plain too, as what its entry says. */
export interface PlainContent {
  readonly id: ObjectId;
  readonly isPlain: (bytes: Buffer) => boolean;
}

/** Null for an object that is not plain, as every annotated tag. */
export function plainObject(type: ObjectType, bytes: Buffer): PlainObject | null {
  switch (type) {
    case 'blob':
      return { links: [], contents: [] };
    case 'commit':
      return plainCommit(bytes);
    case 'tree':
      return plainTree(bytes);
    case 'tag':
      return null;
  }
}

/** Parents of a plain commit. Internal: git checks what is not plain. */
const PARENTS_MAX = 16;

const IDENTITY = '[^<>\\n\\0]*[^ <>\\n\\0] <[^<>\\n\\0]*> (?:0|[1-9][0-9]{0,9}) [+-][0-9]{4}';
const COMMIT = new RegExp(
  `^tree (${OBJECT_ID_PATTERN})\\n((?:parent ${OBJECT_ID_PATTERN}\\n){0,${PARENTS_MAX}})` +
    `author ${IDENTITY}\\ncommitter ${IDENTITY}\\n`,
);
const PARENT = new RegExp(`parent (.{${OBJECT_ID_DIGITS}})`, 'g');

function plainCommit(bytes: Buffer): PlainObject | null {
  if (bytes.includes(0)) return null;
  const text = bytes.toString('latin1');
  const [head, tree, parents] = COMMIT.exec(text) ?? [];
  if (head === undefined || tree === undefined || parents === undefined) return null;
  // Further headers, such as a signature, and then the empty line before the message.
  if (text[head.length] !== '\n' && !text.includes('\n\n', head.length)) return null;
  const links: Link[] = [{ id: objectId(tree), type: 'tree' }];
  for (const [, parent = ''] of parents.matchAll(PARENT)) links.push({ id: objectId(parent), type: 'commit' });
  return { links, contents: [] };
}

/** How git writes the modes of entries, and the type of the object; a submodule's commit is in another repository. */
const MODES: ReadonlyMap<string, ObjectType | null> = new Map([
  ['100644', 'blob'],
  ['100755', 'blob'],
  ['120000', 'blob'],
  ['40000', 'tree'],
  ['160000', null],
] as const);
const LINK_MODE = '120000';
const FOLDER_MODE = '40000';
/** Bytes of a plain name in a tree. Internal: git checks what is not plain. */
const NAME_BYTES_MAX = 255;

const SPACE = 0x20;

/**
 * ASCII, without what hides a name on a file system: on NTFS a backslash, a colon, and the tilde of short names; on
 * HFS+ ignored characters, none of which is ASCII.
 */
const PLAIN_NAME = /^[\x20-\x2e\x30-\x39\x3b-\x5b\x5d-\x7d]+$/;

function plainTree(bytes: Buffer): PlainObject | null {
  const links: Link[] = [];
  const contents: PlainContent[] = [];
  const names = new Set<string>();
  let before = '';
  for (let start = 0; start < bytes.length; ) {
    const space = bytes.indexOf(SPACE, start);
    const zero = space < 0 ? -1 : bytes.indexOf(0, space);
    const end = zero + 1 + OBJECT_ID_BYTES;
    if (zero < 0 || end > bytes.length || space - start > 6 || zero - space > NAME_BYTES_MAX) return null;
    const mode = bytes.toString('latin1', start, space);
    const name = bytes.toString('latin1', space + 1, zero);
    const type = MODES.get(mode);
    if (type === undefined || !PLAIN_NAME.test(name) || names.has(name)) return null;
    // git sorts a folder as if its name ended with a slash.
    const sorted = mode === FOLDER_MODE ? `${name}/` : name;
    if (sorted <= before) return null;
    before = sorted;
    names.add(name);
    const id = bytes.toString('hex', zero + 1, end);
    if (/^0+$/.test(id)) return null;
    const special = specialName(name);
    if (special === 'unusual' || (special === 'attributes' && (type !== 'blob' || mode === LINK_MODE))) return null;
    if (special === 'attributes') contents.push({ id: objectId(id), isPlain: arePlainAttributes });
    if (mode === LINK_MODE) contents.push({ id: objectId(id), isPlain: isPlainTarget });
    if (type !== null) links.push({ id: objectId(id), type });
    start = end;
  }
  return { links, contents };
}

/** Git's own files, under any name by which a file system may know them: NTFS drops dots and spaces at the end. */
function specialName(name: string): 'unusual' | 'attributes' | null {
  if (!name.startsWith('.')) return null;
  if (name === '.gitattributes') return 'attributes';
  switch (name.toLowerCase().replace(/[ .]+$/, '')) {
    case '':
    case '.git':
    case '.gitmodules':
    case '.gitattributes':
      return 'unusual';
    default:
      return null;
  }
}

/** git refuses lines of .gitattributes from this length on, and files of 100 MiB. */
const ATTRIBUTES_LINE_BYTES = 2_048;

/** Whether git takes these bytes for a .gitattributes. */
function arePlainAttributes(bytes: Buffer): boolean {
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf('\n', start);
    if ((end < 0 ? bytes.length : end) - start >= ATTRIBUTES_LINE_BYTES) return false;
    start = end < 0 ? bytes.length : end + 1;
  }
  return true;
}

/**
 * What a link may lead to: printable ASCII, shorter than a path may be, and nothing that some file system knows as a
 * name that begins with `.git`. Git 2.39.4 and other versions of that day refuse links into `.git`, and longer ones.
 */
const PLAIN_TARGET = /^[\x20-\x7e]+$/;
/** Bytes of the target of a plain link. Internal: git checks what is not plain. */
const TARGET_BYTES_MAX = 4_095;

function isPlainTarget(bytes: Buffer): boolean {
  if (bytes.length > TARGET_BYTES_MAX) return false;
  const target = bytes.toString('latin1');
  return PLAIN_TARGET.test(target) && !/\.git|~/i.test(target);
}
