/**
 * The sets of all objects that some tips reach, as sorted ids. They authorise a want that is not a tip.
 *
 * Invariants: a set is exact for its key; memory is bounded, and a set too large to keep still serves its request.
 */
import { LRUCache } from 'lru-cache';
import { OBJECT_ID_BYTES, type ObjectId } from '../../../core/kernel/ids.ts';
import { countedCache } from '../../../core/kernel/shown-caches.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';
import { lines } from './git-objects.ts';

/**
 * Single commits that walks have found to be reached: some hundred bytes each. Internal: a forgotten commit is looked
 * for again.
 */
const REACHED_MAX = 10_000;

export interface ReachableSets {
  /** Whether a walk found before that these tips reach the commit. `key` names the repository and the tips in it. */
  isKnown(key: string, id: ObjectId): boolean;
  noteReached(key: string, ids: readonly ObjectId[]): void;
  get(view: ObjectView, key: string, tips: readonly ObjectId[]): Promise<ReachableSet>;
}

export interface ReachableSet {
  has(id: ObjectId): boolean;
}

interface StoredSet extends ReachableSet {
  readonly memoryBytes: number;
}

export function createReachableSets(git: Git, memoryBytesMax: number): ReachableSets {
  const sets = countedCache(
    'git_reachable',
    'memory',
    new LRUCache<string, StoredSet>({ maxSize: memoryBytesMax, sizeCalculation: (set) => set.memoryBytes }),
  );
  const making = new Map<string, Promise<StoredSet>>();
  const reached = countedCache('git_reached', 'entries', new LRUCache<string, true>({ max: REACHED_MAX }));
  return {
    isKnown: (key, id) => reached.get(`${key} ${id}`) === true,
    noteReached: (key, ids) => {
      for (const id of ids) reached.set(`${key} ${id}`, true);
    },
    get: async (view, key, tips) => {
      const known = sets.get(key) ?? making.get(key);
      if (known !== undefined) return known;
      const made = makeSet(git, view, tips);
      making.set(key, made);
      try {
        const set = await made;
        sets.set(key, set);
        return set;
      } finally {
        making.delete(key);
      }
    },
  };
}

/** Whether the tips reach every one of these commits: then rev-list prints nothing when it excludes the tips. */
export async function areReached(
  git: Git,
  view: ObjectView,
  commits: readonly ObjectId[],
  tips: readonly ObjectId[],
  signal?: AbortSignal,
): Promise<boolean> {
  const args = ['rev-list', '--max-count=1', '--stdin'];
  const command: GitCommand = { args, view, ...(signal === undefined ? {} : { signal }) };
  const revisions = [...commits, ...tips.map((id) => `^${id}`)];
  for await (const batch of idBatches(git.stream(command, lines(revisions)))) if (batch.length > 0) return false;
  return true;
}

/** Counts what at least one tip reaches. */
export async function reachedCount(
  git: Git,
  view: ObjectView,
  tips: Iterable<ObjectId>,
  bounds: Pick<GitCommand, 'signal' | 'wallMsMax'>,
): Promise<number> {
  const command: GitCommand = { args: ['rev-list', '--objects', '--count', '--stdin'], view, ...bounds };
  let printed = '';
  for await (const chunk of git.stream(command, lines(tips))) printed += chunk.toString('latin1');
  if (!/^\d+\n$/.test(printed)) throw new TypeError(`git rev-list printed ${JSON.stringify(printed)}`);
  return Number(printed);
}

/** Lists all objects that the tips reach. Without a bitmap git walks every tree; with one it reads the list from it. */
async function makeSet(git: Git, view: ObjectView, tips: readonly ObjectId[]): Promise<StoredSet> {
  const args = ['rev-list', '--objects', '--no-object-names', '--use-bitmap-index', '--stdin'];
  const command: GitCommand = { args, view };
  let ids = Buffer.alloc(1024 * OBJECT_ID_BYTES);
  let count = 0;
  for await (const batch of idBatches(git.stream(command, lines(tips)))) {
    while ((count + batch.length) * OBJECT_ID_BYTES > ids.length) ids = Buffer.concat([ids], ids.length * 2);
    for (const id of batch) {
      ids.write(id, count * OBJECT_ID_BYTES, 'hex');
      count += 1;
    }
  }
  return sortedSet(ids.subarray(0, count * OBJECT_ID_BYTES), count);
}

/** Ids are spread evenly, so putting each into the bucket of its first two bytes does nearly all of the sorting. */
function sortedSet(ids: Buffer, count: number): StoredSet {
  const starts = new Uint32Array(0x10001);
  const bucketOf = (index: number) => ids.readUInt16BE(index * OBJECT_ID_BYTES);
  for (let index = 0; index < count; index += 1) starts[bucketOf(index) + 1] = (starts[bucketOf(index) + 1] ?? 0) + 1;
  for (let bucket = 0; bucket < 0x10000; bucket += 1)
    starts[bucket + 1] = (starts[bucket + 1] ?? 0) + (starts[bucket] ?? 0);
  const next = starts.slice(0, 0x10000);
  const sorted = Buffer.allocUnsafeSlow(ids.length);
  for (let index = 0; index < count; index += 1) {
    const place = next[bucketOf(index)] ?? 0;
    next[bucketOf(index)] = place + 1;
    ids.copy(sorted, place * OBJECT_ID_BYTES, index * OBJECT_ID_BYTES, (index + 1) * OBJECT_ID_BYTES);
  }
  for (let bucket = 0; bucket < 0x10000; bucket += 1) sortRange(sorted, starts[bucket] ?? 0, starts[bucket + 1] ?? 0);
  return {
    memoryBytes: sorted.length + starts.byteLength,
    has: (id) => {
      const wanted = Buffer.from(id, 'hex');
      let low = starts[wanted.readUInt16BE(0)] ?? 0;
      let high = starts[wanted.readUInt16BE(0) + 1] ?? 0;
      while (low < high) {
        const middle = (low + high) >>> 1;
        const difference = sorted.compare(
          wanted,
          0,
          OBJECT_ID_BYTES,
          middle * OBJECT_ID_BYTES,
          (middle + 1) * OBJECT_ID_BYTES,
        );
        if (difference === 0) return true;
        if (difference < 0) low = middle + 1;
        else high = middle;
      }
      return false;
    },
  };
}

function sortRange(ids: Buffer, start: number, end: number): void {
  if (end - start < 2) return;
  const rows: Buffer[] = [];
  for (let row = start; row < end; row += 1)
    rows.push(Buffer.from(ids.subarray(row * OBJECT_ID_BYTES, (row + 1) * OBJECT_ID_BYTES)));
  rows.sort(Buffer.compare);
  for (const [index, row] of rows.entries()) row.copy(ids, (start + index) * OBJECT_ID_BYTES);
}

/** Splits output of one id a line; yields the ids whose lines each chunk completes. */
export async function* idBatches(chunks: AsyncIterable<Buffer>): AsyncGenerator<readonly ObjectId[]> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = (rest + chunk.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    yield lines as ObjectId[];
  }
}
