/**
 * Finds files of a ref by a part of their path.
 *
 * Invariants: the paths of a tree are listed once and kept by its id, which never changes what it names; whoever asks
 * for a list that is being made waits for it. A list is bounded, and a search in it lets others have the event loop.
 */
import { type FileList, findInList, type ListedFile, startFileList } from '../../git/file-list.ts';
import { MIB } from '../../kernel/byte-units.ts';
import { refuse } from '../../kernel/decider.ts';
import type { FairSlots } from '../../kernel/fair-slots.ts';
import type { AccountId, ObjectId, RepositoryId } from '../../kernel/ids.ts';
import type { Page, PageOf } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { type WorkUnderWay, workOnce } from '../../kernel/work-once.ts';
import type { Clock } from '../../ports/clock.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { resolveObject } from './resolve-ref.ts';

/** How long git may list the paths of a tree. */
export const FILE_LISTING_SPAN_MS = 20_000;
/**
 * The memory of a list in which a search takes the event loop for more than a few turns: a slot is needed for it.
 * Internal: a further search waits.
 */
const LARGE_LIST_BYTES_MIN = 2 * MIB;

/** The list of a tree; null if it has too many paths. */
export interface KnownList {
  readonly list: FileList | null;
}

/** A cache, bounded in memory. */
export interface KnownFiles {
  get(key: string): KnownList | undefined;
  set(key: string, known: KnownList): void;
  readonly underWay: WorkUnderWay<string, KnownList>;
}

export interface FindFilesContext extends ObjectsContext {
  readonly knownFiles: KnownFiles;
  /** By account. */
  readonly largeListings: FairSlots;
  readonly clock: Pick<Clock, 'nextTurn'>;
}

export interface WantedFiles {
  /** A text as resolve-ref.ts reads it; null: the default branch. */
  readonly ref: string | null;
  /** A part of the path, in any case; empty finds all. */
  readonly text: string;
  readonly page: Page;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

export interface FoundFiles {
  /** The ref that the caller named, or the short name of the default branch. */
  readonly ref: string;
  /** The tree whose files these are. */
  readonly tree: ObjectId;
  /** The best first. */
  readonly files: PageOf<ListedFile>;
}

type Refused = { readonly refused: Refusal };

/**
 * Refused with `repository-without-commits`, `default-branch-missing`, `ref-not-found`, `ref-not-a-tree` for a tag of a
 * blob, or `files-too-many`.
 */
export async function findFiles(
  context: FindFilesContext,
  repository: FoundRepository,
  { ref, text, page, signal }: WantedFiles,
): Promise<FoundFiles | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    const resolved = await resolveObject(repository, reader, ref);
    if ('refused' in resolved) return resolved;
    const { name, root } = resolved;
    if (root.type === 'blob') return refuse({ code: 'ref-not-a-tree' });
    const list = await listFiles(context, reader, repository.id, root.id, signal);
    if ('refused' in list) return list;
    const files = await searchList(context, repository.accountId, list, { text, page, signal });
    return { ref: name, tree: root.id, files };
  });
}

/** A search ends when its client leaves, as those for earlier letters of a text do while somebody types. */
async function searchList(
  { clock, largeListings }: Pick<FindFilesContext, 'clock' | 'largeListings'>,
  account: AccountId,
  list: FileList,
  { text, page, signal }: Pick<WantedFiles, 'text' | 'page' | 'signal'>,
): Promise<PageOf<ListedFile>> {
  const isLarge = text !== '' && list.memoryBytes >= LARGE_LIST_BYTES_MIN;
  const release = isLarge ? await largeListings.acquire(account, signal) : null;
  const nextTurn = (): Promise<void> => {
    signal.throwIfAborted();
    return clock.nextTurn();
  };
  try {
    return await findInList(list, text, page, nextTurn);
  } finally {
    release?.();
  }
}

/** Returns all paths below a tree, which the caller has checked to be reached. Refused with `files-too-many`. */
export async function listFiles(
  { knownFiles }: Pick<FindFilesContext, 'knownFiles'>,
  reader: ObjectReader,
  repository: RepositoryId,
  tree: ObjectId,
  signal: AbortSignal,
): Promise<FileList | Refused> {
  const key = `${repository} ${tree}`;
  const known =
    knownFiles.get(key) ??
    (await workOnce(
      knownFiles.underWay,
      key,
      async () => {
        const made = await readFiles(reader, tree, signal);
        // Another time may suffice for what took too long.
        if (made !== TOO_SLOW) knownFiles.set(key, made);
        return made;
      },
      signal,
    ));
  return known.list ?? TOO_MANY;
}

const TOO_SLOW: KnownList = { list: null };

const TOO_MANY: Refused = refuse({ code: 'files-too-many' });

/** A few small trees can name billions of paths. */
async function readFiles(reader: ObjectReader, tree: ObjectId, signal: AbortSignal): Promise<KnownList> {
  const making = startFileList();
  try {
    const chunks = reader.search.files(tree, { sizes: false }, { signal, spanMs: FILE_LISTING_SPAN_MS });
    for await (const chunk of chunks) if (!making.add(chunk)) return { list: null };
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return TOO_SLOW;
  }
  return { list: making.end() };
}
