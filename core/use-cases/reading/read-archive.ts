/**
 * Makes an archive of the files of a commit, or of the tree that a tag leads to, or of one folder of either.
 *
 * Invariants: the repository's objects stay open until the reader of the stream closes it, and the place among the
 * archives of the node taken until git has made it, and no longer on any other exit.
 */
import { decodeUtf8Lossy } from '../../git/utf8.ts';
import { refuse } from '../../kernel/decider.ts';
import type { AccountId, ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { ArchiveFormat } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { refsViewOf } from './advertised-refs.ts';
import { findEntry } from './entry-at-path.ts';
import { type ObjectsContext, openView } from './repository-view.ts';
import { resolveObject } from './resolve-ref.ts';

/** The archives that a node makes at the same time. */
export interface ArchiveLane {
  /**
   * Resolves with a place, or with a refusal if the account has its share already, or if its turn does not come in
   * time. Rejects with the signal's reason when it aborts first.
   */
  enter(account: AccountId, signal: AbortSignal): Promise<ArchivePlace | { readonly refused: Refusal }>;
}

export interface ArchivePlace {
  /** Idempotent. */
  leave(): void;
}

export interface ArchiveContext extends ObjectsContext {
  readonly archives: ArchiveLane;
}

export interface WantedArchive {
  /** The account that asks. */
  readonly account: AccountId;
  /** A text as resolve-ref.ts reads it. */
  readonly ref: string;
  /** The names of a folder from the root down; absent or empty for all files. */
  readonly folder?: readonly Uint8Array[];
  readonly format: ArchiveFormat;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface Archive {
  /** The commit, or the tree. */
  readonly tip: ObjectId;
  /** Names the refs that it may hold names of; null if it holds none. */
  readonly refsKey: string | null;
  /**
   * `<repository>-<ref>`, and the name of the folder, slashes as dashes: the folder that holds everything, and the name
   * of the file.
   */
  readonly name: string;
  readonly chunks: () => AsyncIterable<Uint8Array>;
  /** Whether git has made all of it, so that only its bytes wait for their reader. */
  readonly isMade: () => boolean;
  readonly close: () => void;
}

/**
 * Refused as `resolveObject` is, and with `too-many-archives`, `archives-busy`, `ref-not-a-tree` or `path-not-found`.
 */
export async function readArchive(
  context: ArchiveContext,
  repository: FoundRepository,
  { account, ref, folder = [], format, signal }: WantedArchive,
): Promise<Archive | { readonly refused: Refusal }> {
  const place = await context.archives.enter(account, signal);
  if ('refused' in place) return place;
  const view = openView(context, repository);
  const close = (): void => {
    view.close();
    place.leave();
  };
  let isOpen = false;
  try {
    const reader = await view.objects();
    const resolved = await resolveObject(repository, reader, ref);
    if ('refused' in resolved) return resolved;
    const { commit, root } = resolved;
    if (root.type === 'blob') return refuse({ code: 'ref-not-a-tree' });
    const located = await findEntry(reader, root, { names: folder, folder: true });
    if ('refused' in located) return located;
    const tip = folder.length > 0 ? located.id : (commit?.id ?? root.id);
    // git substitutes nothing in a tree.
    const readsRefs = tip === commit?.id && (await reader.archiveReadsRefs(tip, signal));
    const refs = readsRefs ? refsViewOf(repository) : null;
    const parts = [repository.owned.name, ref, ...folder.slice(-1).map(decodeUtf8Lossy)];
    const name = parts.join('-').replaceAll('/', '-');
    isOpen = true;
    let isMade = false;
    const onMade = (): void => {
      isMade = true;
      place.leave();
    };
    const chunks = () => reader.archive({ tip, refs, format, prefix: `${name}/`, signal, onMade });
    return { tip, refsKey: refs?.key ?? null, name, chunks, isMade: () => isMade, close };
  } finally {
    if (!isOpen) close();
  }
}
