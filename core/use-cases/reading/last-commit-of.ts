/**
 * Finds the commit that last touched what is at one path: a folder, a file or a link.
 *
 * Invariants: it is the commit that the list of the folder above shows beside the entry. It is kept apart from what is
 * known of that folder, whose list would else begin with one entry after a push.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import { listedRow } from '../../git/history/listed-commit.ts';
import { FOLDER_MODE, nameKey, writtenMode } from '../../git/tree-bytes.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { findEntry } from './entry-at-path.ts';
import { findLastCommits } from './last-commits.ts';
import { bytesOf, type ListTreeContext } from './list-tree.ts';
import { closing, openView } from './repository-view.ts';

export interface PathAt {
  /** A commit that the caller may show. */
  readonly tip: ObjectId;
  /** From the root down. */
  readonly names: readonly Uint8Array[];
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** Null if it is not known in time, or if nothing is at the path. The root was last touched by the commit itself. */
export function lastCommitOf(
  context: ListTreeContext,
  repository: FoundRepository,
  { tip, names, signal }: PathAt,
): Promise<CommitRow | null> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const commit = await reader.commit(tip);
    const name = names.at(-1);
    if (commit === null || name === undefined) return commit === null ? null : listedRow(commit);
    const found = await findEntry(reader, { type: 'tree', id: commit.tree }, { names, folder: false });
    if ('refused' in found) return null;
    const mode = found.type === 'dir' ? FOLDER_MODE : writtenMode(found.mode);
    const path = bytesOf({ names: names.slice(0, -1) });
    const last =
      knownInFolder(context, `${repository.id} ${nameKey(path)} ${tip}`, name) ??
      (await lastAlone(context, reader, { repository, tip, path, entry: { name, mode, id: found.id }, signal }));
    const read = last === null ? null : await reader.commit(last);
    return read === null ? null : listedRow(read);
  });
}

/** The list of the folder above may have found it already. */
function knownInFolder({ knownFolders }: ListTreeContext, folder: string, name: Uint8Array): ObjectId | null {
  return knownFolders.get(folder)?.entries.get(nameKey(name))?.commit ?? null;
}

interface EntryIn extends Pick<PathAt, 'tip' | 'signal'> {
  readonly repository: Pick<FoundRepository, 'id'>;
  readonly path: Uint8Array;
  readonly entry: Parameters<typeof findLastCommits>[3][number];
}

async function lastAlone(
  { knownFolders }: ListTreeContext,
  reader: ObjectReader,
  { repository, tip, path, entry, signal }: EntryIn,
): Promise<ObjectId | null> {
  // No name holds a slash, so it ends the name.
  const folder = { key: `${repository.id} alone ${nameKey(entry.name)}/`, tip, path };
  const [found = null] = await findLastCommits(knownFolders, reader, folder, [entry], signal);
  return found;
}
