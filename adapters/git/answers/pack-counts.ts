/**
 * Finds the packs that hold exactly what some tips reach: their push found that out, or git counts what the tips reach.
 *
 * Invariants: the tips of a counted pack lie in it, and none of its objects refers to another pack. So what they reach
 * lies in it, and equal counts mean equal objects, each there once.
 */
import { LRUCache } from 'lru-cache';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { countedCache } from '../../../core/kernel/shown-caches.ts';
import { type CacheFolder, viewOf } from '../cache/cache-folder.ts';
import type { OpenPack } from '../packs/object-source.ts';
import { reachedCount } from '../packs/reachable-sets.ts';
import type { Git, ObjectView } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';

/** git answers clones of smaller repositories as fast. Internal: both ways give the same objects. */
const OBJECTS_MIN = 1_000;
/**
 * git counts a million objects in some ten seconds, and takes some 200 bytes of memory for each. Internal: both ways
 * give the same objects.
 */
const OBJECTS_MAX = 1_000_000;
/** A clone that waits for the count gets no byte until then. Internal: git makes the answer without the count. */
const COUNT_SPAN_MS = 30_000;
/** Each clone compares its wants with all the tips. Internal: both ways give the same objects. */
const TIPS_MAX = 10_000;
/** How often git counts for a pack, in vain. Internal: git makes the answer without the count. */
const ATTEMPTS_MAX = 3;
/** How many packs are remembered, and how many tips of them. */
const REMEMBERED = {
  max: 1_000,
  maxSize: 200_000,
  sizeCalculation: ({ tips }: Pick<WholePack, 'tips'>) => Math.max(1, tips.size),
};

export interface LeasedPacks {
  readonly folder: CacheFolder;
  readonly packs: readonly OpenPack[];
  /** Keeps the lease for work that outlives a request; returns its release. */
  readonly extendLease: () => () => void;
}

/** A pack of exactly the objects that the tips reach. */
export interface WholePack {
  readonly pack: OpenPack;
  readonly tips: ReadonlySet<ObjectId>;
}

export interface PackCounts {
  /** Takes over that these tips reach exactly what a pack holds, which refers to no other one. */
  know(view: ObjectView, pack: OpenPack, tips: readonly ObjectId[]): void;
  /**
   * The largest whole one of these packs. A pack without others is counted first by these tips, which the refs of the
   * repository lead to; null if they are not known.
   */
  find(from: LeasedPacks, tips: readonly ObjectId[] | null): Promise<WholePack | null>;
  /** Resolves when nothing is being counted. */
  settled(): Promise<void>;
}

/** What is known of a pack. The pack itself is not kept, since it takes memory while it is open. */
interface Counted {
  readonly objectCount: number;
  readonly tips: ReadonlySet<ObjectId>;
  /** `waiting` for counts of other packs; `part` if the tips do not reach the whole pack. */
  state: 'waiting' | 'counting' | 'whole' | 'part';
  readonly ended: Promise<void>;
  readonly attempt: number;
}

export function createPackCounts(git: Git, log: GitLog): PackCounts {
  const counted = countedCache('git_pack_counts', 'entries', new LRUCache<string, Counted>(REMEMBERED));
  // One at a time: each takes a whole processor.
  let last: Promise<void> = Promise.resolve();
  let unfinished = 0;

  const remember = (view: ObjectView, pack: OpenPack, made: Omit<Counted, 'objectCount'>): Counted => {
    const known = { ...made, objectCount: pack.index.objectCount };
    counted.set(keyOf(view, pack), known);
    return known;
  };
  /** Begins to count, unless that was done. Calls `release` when the view is not needed any more. */
  const begin = (view: ObjectView, pack: OpenPack, tips: readonly ObjectId[], release: () => void) => {
    const before = counted.get(keyOf(view, pack));
    const isKnown = before !== undefined && (before.state !== 'part' || before.attempt >= ATTEMPTS_MAX);
    if (isKnown || !isWorth(pack, tips)) {
      release();
      return;
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const state = unfinished === 0 ? 'counting' : 'waiting';
    const attempt = (before?.attempt ?? 0) + 1;
    const made = remember(view, pack, { tips: new Set(tips), state, ended, attempt });
    unfinished += 1;
    last = last
      .then(() => count(git, log, view, made))
      .then(() => {
        unfinished -= 1;
        release();
        resolve();
      });
  };

  return {
    know: (view, pack, tips) => {
      if (!isWorth(pack, tips)) return;
      remember(view, pack, { tips: new Set(tips), state: 'whole', ended: Promise.resolve(), attempt: 1 });
    },
    find: async ({ folder, packs, extendLease }, tips) => {
      const view = viewOf(folder);
      const [only] = packs;
      if (packs.length === 1 && only !== undefined && tips !== null) begin(view, only, tips, extendLease());
      const known = packs.flatMap((pack) => {
        const found = counted.get(keyOf(view, pack));
        // A clone waits for no count of another pack.
        return found?.state === 'counting' || found?.state === 'whole' ? [{ pack, found }] : [];
      });
      const largest = known.toSorted((a, b) => b.found.objectCount - a.found.objectCount)[0];
      if (largest === undefined) return null;
      const { pack, found } = largest;
      if (found.state === 'counting') await found.ended;
      return found.state === 'whole' ? { pack, tips: found.tips } : null;
    },
    settled: () => last,
  };
}

async function count(git: Git, log: GitLog, view: ObjectView, made: Counted): Promise<void> {
  made.state = 'counting';
  try {
    const reached = await reachedCount(git, view, made.tips, { wallMsMax: COUNT_SPAN_MS });
    made.state = reached === made.objectCount ? 'whole' : 'part';
  } catch (error) {
    made.state = 'part';
    log.warn({ repository: view.key, error }, 'What a pack holds could not be counted');
  }
}

function isWorth({ index }: OpenPack, tips: readonly ObjectId[]): boolean {
  const { objectCount } = index;
  const isBounded = objectCount >= OBJECTS_MIN && objectCount <= OBJECTS_MAX;
  return isBounded && tips.length > 0 && tips.length <= TIPS_MAX;
}

/** A pack is named after its contents. */
function keyOf({ key }: ObjectView, { name }: OpenPack): string {
  return `${key} ${name}`;
}
