/**
 * Reads a blob or a tree by its id.
 *
 * Invariants: only what a current ref reaches is found, and nothing tells another object from one that does not exist.
 * A large blob is streamed in constant memory, and the repository's objects stay open until the reader of the stream
 * closes it. On every other exit this file closes them.
 */
import type { ObjectInfo } from '../../git/objects.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { CONTENTS_FILE_BYTES_MAX } from '../../kernel/limits.ts';
import type { Page } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { isReachedByRefs } from './authorise-wants.ts';
import { entrySizes, entryType } from './entry-at-path.ts';
import {
  bytesOfFile,
  CONTENTS_NAMES_BYTES_MAX,
  entriesOf,
  type FileBytes,
  type FolderEntry,
  isTextOf,
} from './read-contents.ts';
import { closing, type ObjectsContext, openView } from './repository-view.ts';
import { pageBelow } from './tree-page.ts';

export interface BlobContents {
  readonly id: ObjectId;
  readonly sizeBytes: number;
  /** Whether it is UTF-8 without NUL. */
  readonly isText: boolean;
  readonly content: FileBytes;
}

export interface TreeItem extends FolderEntry {
  /** From the tree down. */
  readonly path: Uint8Array;
}

export interface TreePage {
  readonly items: readonly TreeItem[];
  /** How many entries there are; null if they were not counted. */
  readonly total: number | null;
  readonly hasMore: boolean;
}

type Refused = { readonly refused: Refusal };

const NOT_FOUND: Refused = refuse({ code: 'object-not-found' });

/**
 * Refused with `object-not-found` or `file-too-large`. `judgeStreamed`: whether a blob that is streamed is read to its
 * end, to say whether it is text; else it is said not to be.
 */
export async function readBlob(
  context: ObjectsContext,
  repository: FoundRepository,
  { id, judgeStreamed }: { readonly id: ObjectId; readonly judgeStreamed: boolean },
): Promise<BlobContents | Refused> {
  const view = openView(context, repository);
  let isStreamed = false;
  try {
    const reader = await view.objects();
    const info = await reached(repository, reader, id, 'blob');
    if (info === null) return NOT_FOUND;
    const { sizeBytes } = info;
    if (sizeBytes > CONTENTS_FILE_BYTES_MAX) return refuse({ code: 'file-too-large' });
    const content = await bytesOfFile(reader, info, () => view.close());
    const isText = await isTextOf(content, judgeStreamed);
    isStreamed = content.kind === 'streamed';
    return { id, sizeBytes, isText, content };
  } finally {
    if (!isStreamed) view.close();
  }
}

export interface WantedTreePage {
  readonly id: ObjectId;
  /** Whether the entries of the folders below are listed too, each folder before what is in it. */
  readonly recursive: boolean;
  readonly page: Page;
  readonly signal: AbortSignal;
}

/** Refused with `object-not-found`, `folder-names-too-long` or `tree-too-large`. */
export async function readTree(
  context: ObjectsContext & { readonly clock: Pick<Clock, 'nextTurn'> },
  repository: FoundRepository,
  wanted: WantedTreePage,
): Promise<TreePage | Refused> {
  return closing(openView(context, repository), async (view) => {
    const reader = await view.objects();
    if ((await reached(repository, reader, wanted.id, 'tree')) === null) return NOT_FOUND;
    const found = wanted.recursive ? await below(context, reader, wanted) : await within(reader, wanted);
    if ('refused' in found) return found;
    // Each entry has its name and its path.
    const namesBytes = found.items.reduce((sum, { name, path }) => sum + name.length + path.length, 0);
    return namesBytes > CONTENTS_NAMES_BYTES_MAX ? refuse({ code: 'folder-names-too-long' }) : found;
  });
}

async function within(reader: ObjectReader, { id, page }: WantedTreePage): Promise<TreePage> {
  const { items, total } = await entriesOf(reader, id, page);
  const named = items.map((entry): TreeItem => ({ ...entry, path: entry.name }));
  return { items: named, total, hasMore: page.offset + page.limit < total };
}

async function below(
  { clock }: { readonly clock: Pick<Clock, 'nextTurn'> },
  reader: ObjectReader,
  { id, page, signal }: WantedTreePage,
): Promise<TreePage | Refused> {
  const found = await pageBelow(reader, id, page, { signal, nextTurn: clock.nextTurn });
  if ('refused' in found) return found;
  const sizes = await entrySizes(reader, found.items);
  const items = found.items.map((entry, index): TreeItem => {
    return { ...entry, type: entryType(entry.mode), sizeBytes: sizes[index] ?? null };
  });
  return { items, total: null, hasMore: found.hasMore };
}

async function reached(
  repository: FoundRepository,
  reader: ObjectReader,
  id: ObjectId,
  type: ObjectInfo['type'],
): Promise<ObjectInfo | null> {
  const [info = null] = await reader.lookup([id]);
  if (info?.type !== type) return null;
  return (await isReachedByRefs(repository, reader, id)) ? info : null;
}
