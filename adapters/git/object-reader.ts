/**
 * Reads of one repository: in process where they are small, by git where they are long.
 *
 * Must stay true: only objects of the layers the reader was opened with are found; the lease ends with the reader
 * and the last of its processes, whichever is later.
 */
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { ObjectReader, WalkOptions } from '../../core/ports/object-database.ts';
import type { Bitmaps } from './cache/bitmaps.ts';
import type { Git, GitCommand } from './process/git-commands.ts';
import { createGitObjects, lines, streamBlob } from './packs/git-objects.ts';
import type { CacheLease } from './layer-cache.ts';
import { inTurn, readTips } from './object-graph.ts';
import { parseCommit, parseTagObject, parseTree } from './packs/object-parsing.ts';
import type { AnswerCache } from './answer-cache.ts';
import { createObjectSource } from './packs/object-source.ts';
import { isAncestor, type ObjectAccess } from './receiving/quarantine.ts';
import { idBatches, type ReachableSets } from './packs/reachable-sets.ts';
import { uploadPack } from './upload-pack.ts';
import type { ViewFolders } from './cache/view-folders.ts';

/** Smaller blobs are read whole, in process. */
const BLOB_IN_PROCESS_BYTES_MAX = 1024 * 1024;
export interface ReaderContext {
  readonly git: Git;
  readonly views: ViewFolders;
  readonly bitmaps: Bitmaps;
  readonly reachable: ReachableSets;
  readonly answers: AnswerCache;
}

/** Takes over the lease. */
export function createObjectReader(context: ReaderContext, lease: CacheLease): ObjectReader {
  const { git } = context;
  const view = { key: lease.folder.repository, variables: { GIT_DIR: lease.folder.path } };
  const source = createObjectSource(lease.packs, createGitObjects(git, view));
  const access: ObjectAccess = { source, view };
  let uses = 1;
  let closed = false;

  const leave = () => {
    uses -= 1;
    if (uses === 0) lease.release();
  };
  /** Keeps the lease while the work runs, also past the reader's close. */
  const held = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    enter();
    try {
      return await work();
    } finally {
      leave();
    }
  };
  const heldStream = async function* <Item>(items: () => AsyncIterable<Item>): AsyncGenerator<Item> {
    enter();
    try {
      yield* items();
    } finally {
      leave();
    }
  };
  /** For work that outlives a request of this reader; the request has the lease still. */
  const hold = () => {
    uses += 1;
    return leave;
  };
  const enter = () => {
    if (closed) throw new TypeError('This reader is closed');
    uses += 1;
  };
  const commit = async (id: ObjectId) => {
    const object = await source.read(id);
    return object?.type === 'commit' ? parseCommit(id, object.bytes) : null;
  };

  return {
    lookup: (ids) => held(() => inTurn(ids, (id) => source.info(id))),
    tips: (ids) => held(() => readTips(source, ids)),
    commit: (id) => held(() => commit(id)),
    commits: (ids) => held(() => inTurn(ids, commit)),
    tag: (id) =>
      held(async () => {
        const object = await source.read(id);
        return object?.type === 'tag' ? parseTagObject(id, object.bytes) : null;
      }),
    tree: (id) =>
      held(async () => {
        const object = await source.read(id);
        return object?.type === 'tree' ? parseTree(object.bytes) : null;
      }),
    blob: (id, range) => heldStream(() => readBlob(git, access, id, range)),
    walk: (options) => heldStream(() => walk(git, access, options)),
    isAncestor: (ancestor, descendant) => held(() => isAncestor(git, access, ancestor, descendant)),
    reachable: (ids, tips, tipsKey) => held(() => reachable(context, access, ids, tips, tipsKey)),
    uploadPack: (options) => {
      const make = (signal: AbortSignal) =>
        heldStream(async function* () {
          yield* uploadPack(git, context.views, lease.folder, { ...options, signal });
          let objectCount = 0;
          for (const { index } of lease.packs) objectCount += index.objectCount;
          context.bitmaps.fetched(lease.folder, options.view, objectCount, hold);
        });
      if (options.answerKey === null) return make(options.signal);
      return context.answers.follow(`${lease.folder.repository} ${options.answerKey}`, options.signal, make);
    },
    close: () => {
      if (closed) return;
      closed = true;
      leave();
    },
  };
}

async function* readBlob(
  git: Git,
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
    yield* streamBlob(git, view, id, { start, end });
    return;
  }
  const object = await source.read(id);
  if (object === null) throw new TypeError(`There is no blob ${id}`);
  yield object.bytes.subarray(start, end);
}

async function* walk(git: Git, { view }: ObjectAccess, options: WalkOptions): AsyncGenerator<ObjectId> {
  const { include, exclude, skip, limit } = options;
  if (include.length === 0) return;
  const args = ['rev-list', '--stdin'];
  if (skip !== undefined) args.push(`--skip=${skip}`);
  if (limit !== undefined) args.push(`--max-count=${limit}`);
  const command: GitCommand = { args, view };
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
  const wanted = await inTurn([...new Set(ids)], (id) => access.source.info(id));
  const there = wanted.filter((info) => info !== null);
  if (there.length === 0 || tips.length === 0) return new Set();
  const commits = there.filter(({ type }) => type === 'commit').map(({ id }) => id);
  const found = new Set<ObjectId>();
  // Mostly what is asked for is reached, and one walk says so of all of them.
  if (commits.length === there.length && (await areReached(context.git, access, commits, tips)))
    return new Set(commits);
  const set = await context.reachable.of(access.view, tipsKey, tips);
  for (const { id } of there) if (set.has(id)) found.add(id);
  return found;
}

/** Whether the tips reach every one of these commits: then nothing of them is left when the tips are excluded. */
async function areReached(
  git: Git,
  { view }: ObjectAccess,
  commits: readonly ObjectId[],
  tips: readonly ObjectId[],
): Promise<boolean> {
  const command: GitCommand = { args: ['rev-list', '--max-count=1', '--stdin'], view };
  const revisions = [...commits, ...tips.map((id) => `^${id}`)];
  for await (const batch of idBatches(git.stream(command, lines(revisions)))) if (batch.length > 0) return false;
  return true;
}
