/**
 * Everything some tips reach, as sorted ids: what authorises a want that is neither a tip nor a commit.
 *
 * Must stay true: a set is exact for its key; memory is bounded, and a set too large to keep is still answered from.
 */
import { LRUCache } from 'lru-cache';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type { Git, GitCommand, ObjectView } from './git-commands.ts';
import { lines } from './git-objects.ts';

const ID_BYTES = 20;

export interface ReachableSets {
  /** `key` names the tips within the repository. */
  of(view: ObjectView, key: string, tips: readonly ObjectId[]): Promise<ReachableSet>;
}

export interface ReachableSet {
  has(id: ObjectId): boolean;
}

interface StoredSet extends ReachableSet {
  readonly memoryBytes: number;
}

export function createReachableSets(git: Git, memoryBytesMax: number): ReachableSets {
  const sets = new LRUCache<string, StoredSet>({ maxSize: memoryBytesMax, sizeCalculation: (set) => set.memoryBytes });
  const making = new Map<string, Promise<StoredSet>>();
  return {
    of: async (view, key, tips) => {
      const name = `${view.key} ${key}`;
      const known = sets.get(name) ?? making.get(name);
      if (known !== undefined) return known;
      const made = makeSet(git, view, tips);
      making.set(name, made);
      try {
        const set = await made;
        sets.set(name, set);
        return set;
      } finally {
        making.delete(name);
      }
    },
  };
}

/** All objects the tips reach. Without a bitmap git walks every tree; with one it reads the answer. */
async function makeSet(git: Git, view: ObjectView, tips: readonly ObjectId[]): Promise<StoredSet> {
  const args = ['rev-list', '--objects', '--no-object-names', '--use-bitmap-index', '--stdin'];
  const command: GitCommand = { args, view };
  let ids = Buffer.alloc(1024 * ID_BYTES);
  let count = 0;
  for await (const id of idLines(git.stream(command, lines(tips)))) {
    if ((count + 1) * ID_BYTES > ids.length) ids = Buffer.concat([ids], ids.length * 2);
    ids.write(id, count * ID_BYTES, 'hex');
    count += 1;
  }
  return sortedSet(ids.subarray(0, count * ID_BYTES), count);
}

function sortedSet(ids: Buffer, count: number): StoredSet {
  const order = new Uint32Array(count).map((_, index) => index);
  const compare = (a: number, b: number) =>
    ids.compare(ids, b * ID_BYTES, (b + 1) * ID_BYTES, a * ID_BYTES, (a + 1) * ID_BYTES);
  order.sort(compare);
  const sorted = Buffer.allocUnsafeSlow(ids.length);
  order.forEach((from, to) => ids.copy(sorted, to * ID_BYTES, from * ID_BYTES, (from + 1) * ID_BYTES));
  return {
    memoryBytes: sorted.length + 64,
    has: (id) => {
      const wanted = Buffer.from(id, 'hex');
      let low = 0;
      let high = count;
      while (low < high) {
        const middle = (low + high) >>> 1;
        const difference = sorted.compare(wanted, 0, ID_BYTES, middle * ID_BYTES, (middle + 1) * ID_BYTES);
        if (difference === 0) return true;
        if (difference < 0) low = middle + 1;
        else high = middle;
      }
      return false;
    },
  };
}

/** The ids that stand alone on lines. */
export async function* idLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<ObjectId> {
  let rest = '';
  for await (const chunk of chunks) {
    const all = (rest + chunk.toString('latin1')).split('\n');
    rest = all.pop() ?? '';
    for (const line of all) yield line as ObjectId;
  }
}
