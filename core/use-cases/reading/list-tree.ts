/**
 * Lists a folder with the commit that last touched each of its entries.
 *
 * Invariants: a list says where a commit is not known because the walk took too long; it never names a wrong one.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import { listedRow } from '../../git/history/listed-commit.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type ContentsPath, findAtRef } from './entry-at-path.ts';
import { findLastCommits, type KnownFolders } from './last-commits.ts';
import { entriesOf, type FolderEntry, type Place } from './read-contents.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';

export interface ListTreeContext extends ObjectsContext {
  readonly knownFolders: KnownFolders;
}

export interface WantedTree {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** Null for a text that cannot name anything in a tree. */
  readonly path: ContentsPath | null;
  readonly entries: Page;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface TreeListing {
  /** The version of the repository (`versionOf`). */
  readonly version: string;
  readonly place: Place;
  /** The commit that the ref names; null for a tag of a tree. */
  readonly commit: CommitRow | null;
  /** The id of the tree. */
  readonly id: ObjectId;
  /** In the order of Git's trees: by bytes, folders as if their names ended in a slash. */
  readonly entries: PageOf<ListedEntry>;
}

export interface ListedEntry extends FolderEntry {
  /** The newest commit that made the entry what it is; null if it was not found in time, or in a tag of a tree. */
  readonly lastCommit: CommitRow | null;
}

type Refused = { readonly refused: Refusal };

/** Refused with `repository-without-commits`, `ref-not-found`, or `path-not-found` if there is no folder. */
export async function listTree(
  context: ListTreeContext,
  repository: FoundRepository,
  { ref, path: asked, entries: page, signal }: WantedTree,
): Promise<TreeListing | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const at = await findAtRef(repository, reader, { ref, path: asked });
    if ('refused' in at) return at;
    const { resolved, path, located } = at;
    if (located.type !== 'dir') return refuse({ code: 'path-not-found' });
    const { commit } = resolved;
    const { items, total } = await entriesOf(reader, located.id, page);
    const folder = commit === null ? null : { key: repository.id, tip: commit.id, path: bytesOf(path) };
    const ids = folder === null ? [] : await findLastCommits(context.knownFolders, reader, folder, items, signal);
    const rows = await commitRows(reader, ids);
    const listed = items.map((entry, index) => ({ ...entry, lastCommit: rows.get(ids[index] ?? null) ?? null }));
    return {
      version: view.version,
      place: { names: path.names, ref: resolved.name, commit: commit?.id ?? null },
      commit: commit === null ? null : listedRow(commit),
      id: located.id,
      entries: { items: listed, total },
    };
  });
}

/** Reads each of the commits once. */
async function commitRows(
  reader: ObjectReader,
  ids: readonly (ObjectId | null)[],
): Promise<ReadonlyMap<ObjectId | null, CommitRow>> {
  const rows = new Map<ObjectId | null, CommitRow>();
  for (const id of new Set(ids)) {
    const commit = id === null ? null : await reader.commit(id);
    if (commit !== null) rows.set(id, listedRow(commit));
  }
  return rows;
}

/** The names of a path, which `bytesOf` joins again. */
export function namesIn(path: Uint8Array): readonly Uint8Array[] {
  const names: Uint8Array[] = [];
  for (let start = 0; start <= path.length; ) {
    const slash = path.indexOf(0x2f, start);
    const end = slash < 0 ? path.length : slash;
    names.push(path.subarray(start, end));
    start = end + 1;
  }
  return names;
}

/** The path as git has it: names separated by slashes. */
export function bytesOf({ names }: Pick<ContentsPath, 'names'>): Uint8Array {
  const length = names.reduce((sum, name) => sum + name.length + 1, -1);
  const bytes = new Uint8Array(Math.max(0, length));
  let at = 0;
  for (const name of names) {
    bytes.set(name, at);
    at += name.length;
    if (at < bytes.length) bytes[at] = 0x2f;
    at += 1;
  }
  return bytes;
}
