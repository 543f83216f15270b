/**
 * Reads of one repository: short reads in process, long ones by git.
 *
 * Invariants: a reader finds only objects of the layers it was opened with; the lease ends when the reader is
 * closed and the last of its processes has ended, whichever is later.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parentsFault } from '../../core/git/object-bounds.ts';
import type { FairSlots } from '../../core/kernel/fair-slots.ts';
import { type AccountId, type ObjectId, type RepositoryId, uuid } from '../../core/kernel/ids.ts';
import { COMMIT_PARENTS_MAX } from '../../core/kernel/limits.ts';
import { ObjectDatabaseError, type ObjectReader, type WalkOptions } from '../../core/ports/object-database.ts';
import type { ObjectHistory } from '../../core/ports/object-history.ts';
import type { ObjectSearch } from '../../core/ports/object-search.ts';
import type { AnswerCache } from './answers/answer-cache.ts';
import type { MakeAnswer } from './answers/growing-answer.ts';
import { uploadPack } from './answers/upload-pack.ts';
import type { WholePacks } from './answers/whole-packs.ts';
import { type ArchiveContext, archive, readsRefs } from './archive.ts';
import type { Bitmaps } from './cache/bitmaps.ts';
import { viewOf } from './cache/cache-folder.ts';
import type { CommitGraphs } from './cache/commit-graphs.ts';
import type { CacheLease } from './cache/layer-cache.ts';
import type { ViewFolders } from './cache/view-folders.ts';
import { commitText } from './commit-text.ts';
import { countCommits, createObjectHistory } from './object-history.ts';
import { createObjectSearch } from './object-search.ts';
import { isAncestor, type ObjectAccess } from './packs/ancestry.ts';
import { createGitObjects, lines, streamBlob } from './packs/git-objects.ts';
import { readCommitSeconds, readInTurn, readTips } from './packs/object-graph.ts';
import { parseCommit, parseTagObject } from './packs/object-parsing.ts';
import { createObjectSource } from './packs/object-source.ts';
import { idsStartingWith } from './packs/pack-index.ts';
import { areReached, idBatches, type ReachableSets } from './packs/reachable-sets.ts';
import { entryOfName, treePage } from './packs/tree-entries.ts';
import type { Git, GitCommand } from './process/git-commands.ts';
import type { ReadingSlots } from './reading-slots.ts';

/**
 * Blobs up to this size are read whole, in process; git streams larger ones. Internal: both ways give the same bytes.
 */
const BLOB_IN_PROCESS_BYTES_MAX = 1024 * 1024;
/** The signal of a stream that ends when nobody reads on. */
const NEVER = new AbortController().signal;

export interface ReaderContext {
  readonly git: Git;
  readonly views: ViewFolders;
  readonly bitmaps: Bitmaps;
  readonly graphs: CommitGraphs;
  readonly reachable: ReachableSets;
  readonly answers: AnswerCache;
  readonly wholePacks: WholePacks;
  readonly slots: ReadingSlots;
  /** The turns of those who read trees that are large. */
  readonly largeTrees: FairSlots;
  readonly archives: ArchiveContext;
}

/** Returns what the keys of all answers of a repository begin with. */
export function answerKeyStart(repository: RepositoryId): string {
  return `${repository} `;
}

export function repositoryOfAnswer(key: string): RepositoryId {
  return uuid<RepositoryId>(key.slice(0, key.indexOf(' ')));
}

/** Takes over the lease: the reader releases it. Git's processes take turns by the account. */
export function createObjectReader(context: ReaderContext, lease: CacheLease, account: AccountId): ObjectReader {
  const { git } = context;
  const view = viewOf(lease.folder, account);
  const source = createObjectSource(lease.packs, createGitObjects(git, view));
  const access: ObjectAccess = { source, view };
  const shared = shareLease(lease);
  const { withLease, streamWithLease, extendLease, close } = shared;
  /** Notes that git will walk from these tips. */
  const walked = (tips: readonly ObjectId[]) => {
    context.graphs.walked(lease.folder, tips, countObjects(lease), extendLease);
  };
  const commit = (id: ObjectId) => readCommit(source, id);
  const inTree = <Result>(id: ObjectId, search: (bytes: Buffer) => Promise<Result>) =>
    withLease(() => searchTree(context, access, id, search));
  /** What git makes waits on disk for a slow reader, and its process ends. */
  const spooled = (signal: AbortSignal, make: MakeAnswer) =>
    streamWithLease(() => context.answers.spool({ account, signal, make }));

  return {
    lookup: (ids) => withLease(() => readInTurn(ids, (id) => source.info(id))),
    startingWith: (digits, limit) => withLease(() => startingWith(lease, digits, limit)),
    tips: (ids) => withLease(() => readTips(source, ids)),
    commit: (id) => withLease(() => commit(id)),
    commits: (ids) => withLease(() => readInTurn(ids, commit)),
    commitSeconds: (ids) => withLease(() => readCommitSeconds(source, ids)),
    tag: (id) =>
      withLease(async () => {
        const object = await source.read(id);
        return object?.type === 'tag' ? parseTagObject(id, object.bytes) : null;
      }),
    tree: (id, page) => inTree(id, (bytes) => treePage(bytes, page, nextTurn)),
    entry: (id, name) => inTree(id, (bytes) => entryOfName(bytes, name, nextTurn)),
    blob: (id, range) => streamWithLease(() => readBlob(context, access, id, range)),
    walk: (options) => streamWithLease(() => walk(git, access, context.slots.walks, options)),
    count: (tip) =>
      withLease(() => {
        walked([tip]);
        return countCommits(git, view, context.slots, tip);
      }),
    isAncestor: (ancestor, descendant) =>
      withLease(() => isAncestor(git, access, { before: ancestor, after: descendant })),
    history: leasedHistory(createObjectHistory(context, view), shared, walked),
    search: leasedSearch(createObjectSearch(context, view), shared),
    reachable: (ids, tips, tipsKey) =>
      withLease(() => reachable(context, access, ids, tips, `${lease.folder.repository} ${tipsKey}`)),
    uploadPack: (options) =>
      streamWithLease(async function* () {
        const { clone = null, answerKey } = options;
        const from = { folder: lease.folder, packs: lease.packs, source, extendLease };
        const whole = clone === null ? null : await context.wholePacks.answer(from, { ...options, clone });
        const make: MakeAnswer = (signal, pacing) =>
          streamWithLease(async function* () {
            yield* uploadPack(git, context.views, lease.folder, { ...options, signal, pacing, account });
            context.bitmaps.fetched(lease.folder, options.view, countObjects(lease), extendLease);
          });
        const wanted = { account, signal: options.signal, make };
        if (whole !== null) yield* whole;
        else if (answerKey === null) yield* context.answers.spool(wanted);
        else yield* context.answers.follow({ key: answerKeyStart(lease.folder.repository) + answerKey, ...wanted });
      }),
    commitText: (options) =>
      spooled(options.signal, (signal, pacing) => commitText(context, view, { ...options, signal }, pacing)),
    archiveReadsRefs: (commitId, signal) => withLease(() => readsRefs(context.archives, view, commitId, signal)),
    archive: (options) =>
      spooled(options.signal, (signal) => archive(context, lease.folder, account, { ...options, signal })),
    close,
  };
}

async function readCommit(source: ObjectAccess['source'], id: ObjectId) {
  const object = await source.read(id);
  const read = object?.type === 'commit' ? parseCommit(id, object.bytes) : null;
  if (read !== null && read.parents.length > COMMIT_PARENTS_MAX) {
    throw new ObjectDatabaseError('object-too-large', parentsFault(id));
  }
  return read;
}

/** One pack after the other, since each search may read files; an object may lie in several. */
async function startingWith({ packs }: CacheLease, digits: string, limit: number): Promise<readonly ObjectId[]> {
  const found = new Set<ObjectId>();
  for (const { index } of packs) for (const id of await idsStartingWith(index, digits, limit)) found.add(id);
  return [...found].sort().slice(0, limit);
}

/** Searches a tree while it holds one of the few turns for large objects, if the tree is one; null if there is none. */
async function searchTree<Result>(
  { largeTrees }: ReaderContext,
  { source, view }: ObjectAccess,
  id: ObjectId,
  search: (bytes: Buffer) => Promise<Result>,
): Promise<Result | null> {
  const turns: (() => void)[] = [];
  try {
    const object = await source.read(id, async () => {
      if (turns.length === 0) turns.push(await largeTrees.acquire(view.key));
    });
    return object?.type === 'tree' ? await search(object.bytes) : null;
  } finally {
    for (const release of turns) release();
  }
}

interface SharedLease {
  /** Runs the work and keeps the lease until it ends, even when the reader is closed before that. */
  withLease<Result>(work: () => Promise<Result>): Promise<Result>;
  streamWithLease<Item>(items: () => AsyncIterable<Item>): AsyncGenerator<Item>;
  /** Keeps the lease for work that outlives a call of this reader; returns its release. Call it during that call. */
  extendLease(): () => void;
  /** Refuses new work from now on. Idempotent. */
  close(): void;
}

/** Counts who uses the lease (the reader, and the work that it began) and releases it when the last one leaves. */
function shareLease(lease: CacheLease): SharedLease {
  let uses = 1;
  let closed = false;
  const leave = () => {
    uses -= 1;
    if (uses === 0) lease.release();
  };
  const enter = () => {
    if (closed) throw new TypeError('This reader is closed');
    uses += 1;
  };
  return {
    withLease: async (work) => {
      enter();
      try {
        return await work();
      } finally {
        leave();
      }
    },
    streamWithLease: async function* (items) {
      enter();
      try {
        yield* items();
      } finally {
        leave();
      }
    },
    extendLease: () => {
      uses += 1;
      return leave;
    },
    close: () => {
      if (closed) return;
      closed = true;
      leave();
    },
  };
}

function countObjects({ packs }: CacheLease): number {
  return packs.reduce((sum, { index }) => sum + index.objectCount, 0);
}

/** The same calls, each of which keeps the lease until it ends. `walked` is told the tips of each walk. */
function leasedHistory(
  history: ObjectHistory,
  { withLease, streamWithLease }: SharedLease,
  walked: (tips: readonly ObjectId[]) => void,
): ObjectHistory {
  const stream = <Item>(tips: readonly ObjectId[], items: () => AsyncIterable<Item>): AsyncIterable<Item> =>
    streamWithLease(() => {
      walked(tips);
      return items();
    });
  const answer = <Result>(tips: readonly ObjectId[], work: () => Promise<Result>): Promise<Result> =>
    withLease(() => {
      walked(tips);
      return work();
    });
  return {
    diff: (from, to, bounded) => streamWithLease(() => history.diff(from, to, bounded)),
    diffOfBlobs: (from, to, bounded) => streamWithLease(() => history.diffOfBlobs(from, to, bounded)),
    findCommits: (tip, filter, bounded) => stream([tip], () => history.findCommits(tip, filter, bounded)),
    changesBelow: (tip, exclude, paths, bounded) =>
      stream([tip], () => history.changesBelow(tip, exclude, paths, bounded)),
    blame: (tip, path, lines, bounded) => stream([tip], () => history.blame(tip, path, lines, bounded)),
    links: (include, exclude, bounded) => stream(include, () => history.links(include, exclude, bounded)),
    commitsBetween: (exclude, tip, page, bounded) =>
      answer([exclude, tip], () => history.commitsBetween(exclude, tip, page, bounded)),
    aheadBehind: (a, b, bounded) => answer([a, b], () => history.aheadBehind(a, b, bounded)),
    mergeBase: (a, b, bounded) => answer([a, b], () => history.mergeBase(a, b, bounded)),
  };
}

function leasedSearch(search: ObjectSearch, { withLease, streamWithLease }: SharedLease): ObjectSearch {
  return {
    files: (tree, options, bounded) => streamWithLease(() => search.files(tree, options, bounded)),
    lines: (root, wanted, bounded) => streamWithLease(() => search.lines(root, wanted, bounded)),
    isBinary: (blob, bounded) => withLease(() => search.isBinary(blob, bounded)),
    regexFault: (regex, bounded) => withLease(() => search.regexFault(regex, bounded)),
  };
}

async function* readBlob(
  { git, answers }: Pick<ReaderContext, 'git' | 'answers'>,
  { source, view }: ObjectAccess,
  id: ObjectId,
  range: { readonly start: number; readonly end: number } | undefined,
): AsyncGenerator<Uint8Array> {
  const info = await source.info(id);
  if (info?.type !== 'blob') throw new TypeError(`There is no blob ${id}`);
  const start = range?.start ?? 0;
  const end = Math.min(range?.end ?? info.sizeBytes, info.sizeBytes);
  if (start >= end) return;
  if (info.sizeBytes > BLOB_IN_PROCESS_BYTES_MAX) {
    const make: MakeAnswer = (signal, pacing) => streamBlob(git, view, id, { start, end, signal, pacing });
    yield* answers.spool({ account: view.key, signal: NEVER, make });
    return;
  }
  const object = await source.read(id);
  if (object === null) throw new TypeError(`There is no blob ${id}`);
  yield object.bytes.subarray(start, end);
}

async function* walk(
  git: Git,
  { view }: ObjectAccess,
  slots: FairSlots,
  options: WalkOptions,
): AsyncGenerator<ObjectId> {
  const { include, exclude, skip, limit, signal } = options;
  if (include.length === 0) return;
  const args = ['rev-list', '--stdin'];
  if (skip !== undefined) args.push(`--skip=${skip}`);
  if (limit !== undefined) args.push(`--max-count=${limit}`);
  const command: GitCommand = { args, view, slots, ...(signal === undefined ? {} : { signal }) };
  const revisions = [...include, ...exclude.map((id) => `^${id}`)];
  for await (const batch of idBatches(git.stream(command, lines(revisions)))) yield* batch;
}

async function reachable(
  context: ReaderContext,
  access: ObjectAccess,
  ids: readonly ObjectId[],
  tips: readonly ObjectId[],
  tipsKey: string,
): Promise<ReadonlySet<ObjectId>> {
  const distinct = [...new Set(ids)];
  const found = new Set(distinct.filter((id) => context.reachable.isKnown(tipsKey, id)));
  const unknown = distinct.filter((id) => !found.has(id));
  const wanted = await readInTurn(unknown, (id) => access.source.info(id));
  const existing = wanted.filter((info) => info !== null);
  if (existing.length === 0 || tips.length === 0) return found;
  const commits = existing.filter(({ type }) => type === 'commit').map(({ id }) => id);
  // Mostly the tips reach all the requested commits, and one walk confirms that for all of them.
  if (commits.length === existing.length && (await areReached(context.git, access.view, commits, tips))) {
    context.reachable.noteReached(tipsKey, commits);
    return new Set([...found, ...commits]);
  }
  const set = await context.reachable.get(access.view, tipsKey, tips);
  for (const { id } of existing) if (set.has(id)) found.add(id);
  return found;
}
