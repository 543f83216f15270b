/**
 * Finds the file, folder, symbolic link or submodule at a path of a commit, or of what a tag leads to.
 *
 * Invariants: a path is a list of names as bytes, which are only compared with the names in trees. No name is
 * special and no link is followed, so a path can reach nothing but the commit's own trees.
 */
import type { TreeEntry } from '../../git/objects.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { CONTENTS_FILE_BYTES_MAX } from '../../kernel/limits.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type ResolvedObject, type Root, resolveObject } from './resolve-ref.ts';

export type EntryType = 'file' | 'dir' | 'symlink' | 'submodule';

export type FoundEntry =
  | { readonly type: 'dir'; readonly id: ObjectId }
  | {
      readonly type: 'file' | 'symlink';
      readonly id: ObjectId;
      readonly mode: string;
      readonly sizeBytes: number;
    }
  /** The id is that of a commit of another repository. */
  | { readonly type: 'submodule'; readonly id: ObjectId; readonly mode: string };

export interface ContentsPath {
  /** From the root down; empty for the root itself. */
  readonly names: readonly Uint8Array[];
  /** Whether only a folder may be found, because the path was written with a slash at its end. */
  readonly folder: boolean;
}

type Refused = { readonly refused: Refusal };

/** That of a file that no tree has. */
const FILE_MODE = '100644';
const NOT_FOUND: Refused = refuse({ code: 'path-not-found' });

export function entryType(mode: string): EntryType {
  switch (mode) {
    case '040000':
      return 'dir';
    case '120000':
      return 'symlink';
    case '160000':
      return 'submodule';
    default:
      // Old histories have other modes of files, such as 100664.
      return 'file';
  }
}

/** What is at a path of a ref. */
export interface FoundAtRef {
  readonly resolved: ResolvedObject;
  readonly path: ContentsPath;
  readonly located: FoundEntry;
}

/** Refused as `resolveObject` and `findEntry` are; a `path` of null cannot name anything in a tree. */
export async function findAtRef(
  repository: FoundRepository,
  reader: ObjectReader,
  { ref, path }: { readonly ref: string | null; readonly path: ContentsPath | null },
): Promise<FoundAtRef | Refused> {
  const resolved = await resolveObject(repository, reader, ref);
  if ('refused' in resolved) return resolved;
  if (path === null) return NOT_FOUND;
  const located = await findEntry(reader, resolved.root, path);
  return 'refused' in located ? located : { resolved, path, located };
}

/** Refused with `path-not-found`, or with `file-too-large` for a file beyond `CONTENTS_FILE_BYTES_MAX`. */
export async function findEntry(reader: ObjectReader, root: Root, path: ContentsPath): Promise<FoundEntry | Refused> {
  if (root.type === 'blob' && path.names.length > 0) return NOT_FOUND;
  let found: FoundEntry =
    root.type === 'tree'
      ? { type: 'dir', id: root.id }
      : { type: 'file', id: root.id, mode: FILE_MODE, sizeBytes: await sizeOf(reader, root.id) };
  for (const [index, name] of path.names.entries()) {
    const entry = await reader.entry(found.id, name);
    if (entry === null) return NOT_FOUND;
    const type = entryType(entry.mode);
    const isLast = index === path.names.length - 1;
    if (type === 'dir') found = { type, id: entry.id };
    else if (!isLast || path.folder) return NOT_FOUND;
    else if (type === 'submodule') found = { type, id: entry.id, mode: entry.mode };
    else found = { type, id: entry.id, mode: entry.mode, sizeBytes: await sizeOf(reader, entry.id) };
  }
  const tooLarge = 'sizeBytes' in found && found.sizeBytes > CONTENTS_FILE_BYTES_MAX;
  return tooLarge ? refuse({ code: 'file-too-large' }) : found;
}

/** Returns the sizes of a folder's files and links, in the order of its entries; null for folders and submodules. */
export async function entrySizes(
  reader: ObjectReader,
  entries: readonly TreeEntry[],
): Promise<readonly (number | null)[]> {
  const blobs = entries.filter(({ mode }) => isBlob(mode)).map(({ id }) => id);
  const infos = await reader.lookup(blobs);
  const sizes = new Map(infos.flatMap((info) => (info === null ? [] : [[info.id, info.sizeBytes] as const])));
  return entries.map(({ mode, id }) => (isBlob(mode) ? (sizes.get(id) ?? missing(id)) : null));
}

function isBlob(mode: string): boolean {
  const type = entryType(mode);
  return type === 'file' || type === 'symlink';
}

/** Returns a page of a folder's entries. */
export async function entriesOfFolder(reader: ObjectReader, id: ObjectId, page: Page): Promise<PageOf<TreeEntry>> {
  return (await reader.tree(id, page)) ?? missing(id);
}

async function sizeOf(reader: ObjectReader, id: ObjectId): Promise<number> {
  const [info] = await reader.lookup([id]);
  return info?.sizeBytes ?? missing(id);
}

/**
 * Throws: committed layers are closed under reachability (docs/architecture.md, invariant 3), so the object was lost.
 */
function missing(id: ObjectId): never {
  throw new ObjectDatabaseError('layer-missing', `Object ${id} is in none of the repository's layers`);
}
