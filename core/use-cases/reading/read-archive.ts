/**
 * Makes an archive of a commit's files.
 *
 * Must stay true: the repository's objects stay open until the reader of the stream closes it, and no longer on any other
 * exit.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ArchiveFormat } from '../../ports/object-database.ts';
import type { FoundRepository } from '../accounts/repositories.ts';
import { type ObjectsContext, openView } from './repository-view.ts';
import { resolveRef } from './resolve-ref.ts';

export interface WantedArchive {
  /** A branch, a tag or a full commit id. */
  readonly ref: string;
  readonly format: ArchiveFormat;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface Archive {
  readonly commit: ObjectId;
  /** `<repository>-<ref>`, slashes as dashes: the folder that holds everything, and the name of the file. */
  readonly name: string;
  readonly chunks: () => AsyncIterable<Uint8Array>;
  readonly close: () => void;
}

/** Refused with `repository-without-commits` or `ref-not-found`. */
export async function readArchive(
  context: ObjectsContext,
  repository: FoundRepository,
  { ref, format, signal }: WantedArchive,
): Promise<Archive | { readonly refused: Refusal }> {
  const view = openView(context, repository);
  let isOpen = false;
  try {
    const reader = await view.objects();
    const resolved = await resolveRef(repository, reader, ref);
    if ('refused' in resolved) return resolved;
    const commit = resolved.commit.id;
    const name = `${repository.owned.name}-${ref.replaceAll('/', '-')}`;
    isOpen = true;
    return {
      commit,
      name,
      chunks: () => reader.archive({ commit, format, prefix: `${name}/`, signal }),
      close: () => view.close(),
    };
  } finally {
    if (!isOpen) view.close();
  }
}
