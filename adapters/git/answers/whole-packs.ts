/**
 * Answers a plain clone with a stored pack as it lies, followed by what is newer: git then counts nothing of what the
 * pack holds, and copies nothing of it (docs/git-path.md, A stored pack as it lies).
 *
 * Invariants: a pack is sent whole only after git counted that its tips reach as many objects as it has and they all
 * lie in it, and only to a client whose wants reach all these tips. So an answer holds exactly what its wants reach,
 * each object once.
 */
import { LRUCache } from 'lru-cache';
import type { ObjectId, RepositoryId } from '../../../core/kernel/ids.ts';
import { countedCache } from '../../../core/kernel/shown-caches.ts';
import type { PlainClone, RefsView } from '../../../core/ports/object-database.ts';
import { type CacheFolder, packPath, viewOf } from '../cache/cache-folder.ts';
import { lines } from '../packs/git-objects.ts';
import { readInTurn } from '../packs/object-graph.ts';
import type { ObjectSource, OpenPack } from '../packs/object-source.ts';
import { areReached } from '../packs/reachable-sets.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';
import { createPackCounts, type LeasedPacks, type WholePack } from './pack-counts.ts';
import { SharedWork } from './shared-work.ts';
import {
  type NewerObjects,
  newerOf,
  packStart,
  type Sending,
  sendWholePack,
  type WholePackAnswer,
} from './whole-pack-answer.ts';

/** If more tips were moved since, git makes the answer. Internal: both ways give the same objects. */
const MOVED_TIPS_MAX = 1_000;
/** If what is newer takes more, git makes the answer. Internal: both ways give the same objects. */
const NEWER_BYTES_MAX = 4 * 1024 * 1024;

const NEWER_MEMORY_BYTES = 32 * 1024 * 1024;
const ANSWER_OVERHEAD_BYTES = 1_024;

/** What a request is answered from, under a lease. */
export interface ClonedObjects extends LeasedPacks {
  readonly source: ObjectSource;
}

export interface CloneOptions extends Sending {
  readonly clone: PlainClone;
  readonly view: RefsView;
  readonly answerKey: string | null;
  readonly signal: AbortSignal;
}

export interface WholePacks {
  /**
   * Takes over that these tips reach exactly what a pack of the folder holds. Call it for one that refers to no other,
   * as the first one of a repository.
   */
  received(folder: CacheFolder, pack: OpenPack, tips: readonly ObjectId[]): void;
  /** The answer to a clone, or null if git must make it. */
  answer(from: ClonedObjects, options: CloneOptions): Promise<AsyncGenerator<Uint8Array> | null>;
  /** Forgets what is known of a repository. */
  drop(repository: RepositoryId): void;
  /** Resolves when nothing is being counted. */
  settled(): Promise<void>;
}

export function createWholePacks(git: Git, log: GitLog): WholePacks {
  const counts = createPackCounts(git, log);
  const answers = countedCache(
    'git_whole_packs',
    'memory',
    new LRUCache<string, WholePackAnswer>({
      maxSize: NEWER_MEMORY_BYTES,
      sizeCalculation: ({ newer }) => newer.body.length + ANSWER_OVERHEAD_BYTES,
    }),
  );
  const making = new SharedWork<WholePackAnswer | null>();

  const answerOf = async (from: ClonedObjects, whole: WholePack, options: CloneOptions) => {
    const { clone, answerKey, signal } = options;
    if (answerKey === null) return makeAnswer(git, from, whole, clone, signal);
    const key = `${from.folder.repository} ${whole.pack.name} ${answerKey}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    return making.join(key, signal, async (stop) => {
      const release = from.extendLease();
      try {
        const made = await makeAnswer(git, from, whole, clone, stop);
        if (made !== null) answers.set(key, made);
        return made;
      } finally {
        release();
      }
    });
  };

  return {
    received: (folder, pack, tips) => counts.know(viewOf(folder), pack, tips),
    answer: async (from, options) => {
      const { areAllWanted, areTagsWanted } = wantedOf(options);
      // git would add the annotated tags that nobody wants by name.
      if (options.clone.includeTag && !areTagsWanted) return null;
      const whole = await counts.find(from, areAllWanted ? options.clone.wants : null);
      const made = whole === null ? null : await answerOf(from, whole, options);
      if (whole === null || made === null) return null;
      return sendWholePack(packPath(from.folder, whole.pack.name, 'pack'), made, options);
    },
    drop: (repository) => {
      const keyStart = `${repository} `;
      for (const key of Array.from(answers.keys())) if (key.startsWith(keyStart)) answers.delete(key);
    },
    settled: counts.settled,
  };
}

/** Which refs of the view are wanted: all of them, and all annotated tags. */
function wantedOf({ clone, view }: CloneOptions): { readonly areAllWanted: boolean; readonly areTagsWanted: boolean } {
  const wanted = new Set(clone.wants);
  const unwanted = view.runs.flatMap((run) => run.filter(({ id }) => !wanted.has(id)));
  return { areAllWanted: unwanted.length === 0, areTagsWanted: unwanted.every(({ peeled }) => peeled === null) };
}

/** Null if git must make the answer. */
async function makeAnswer(
  git: Git,
  from: ClonedObjects,
  { pack, tips }: WholePack,
  { wants }: PlainClone,
  signal: AbortSignal,
): Promise<WholePackAnswer | null> {
  const view = viewOf(from.folder);
  if (!(await reachAll(git, view, from.source, { wants, tips, signal }))) return null;
  const newer = await newerObjects(git, view, pack, { wants, tips, signal });
  return newer === null ? null : { start: packStart(pack.index.objectCount + newer.objectCount), newer, trailer: null };
}

/** A clone, and the tips of the whole pack. */
interface Newer {
  readonly wants: readonly ObjectId[];
  readonly tips: ReadonlySet<ObjectId>;
  readonly signal: AbortSignal;
}

/** Whether the wants reach all these tips. */
async function reachAll(
  git: Git,
  view: ObjectView,
  source: ObjectSource,
  { wants, tips, signal }: Newer,
): Promise<boolean> {
  const wanted = new Set(wants);
  const moved = [...tips].filter((id) => !wanted.has(id));
  if (moved.length === 0) return true;
  if (moved.length > MOVED_TIPS_MAX) return false;
  const infos = await readInTurn(moved, (id) => source.info(id));
  // For a tag, git would compare the commit that it leads to.
  if (infos.some((info) => info?.type !== 'commit')) return false;
  return areReached(git, view, moved, wants, signal);
}

/** Packs what the wants reach and the pack does not hold; null if that is too much. */
async function newerObjects(
  git: Git,
  view: ObjectView,
  { name }: OpenPack,
  { wants, tips, signal }: Newer,
): Promise<NewerObjects | null> {
  const newer = wants.filter((id) => !tips.has(id));
  if (newer.length === 0) return { objectCount: 0, body: Buffer.alloc(0) };
  const options = ['--revs', '--thin', '--stdout', '-q', '--delta-base-offset', `--keep-pack=pack-${name}.pack`];
  const command: GitCommand = { args: ['pack-objects', ...options], view, signal };
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of git.stream(command, lines([...newer, ...Array.from(tips, (id) => `^${id}`)]))) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > NEWER_BYTES_MAX) return null;
  }
  return newerOf(Buffer.concat(chunks));
}
