/**
 * Finds the packs that hold exactly what some tips reach: git counts what the tips reach.
 *
 * Must stay true: the tips of a counted pack lie in it, and none of its objects refers to another pack. So what they reach
 * lies in it, and equal counts mean equal objects, each there once.
 */
import { LRUCache } from 'lru-cache';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { type CacheFolder, viewOf } from './cache-folder.ts';
import { lines } from '../packs/git-objects.ts';
import type { OpenPack } from '../packs/object-source.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';

/** git answers clones of smaller repositories as fast. */
const OBJECTS_MIN = 1_000;
/** git counts a million objects in some ten seconds, and takes some 200 bytes of memory for each. */
const OBJECTS_MAX = 1_000_000;
/** A clone that waits for the count gets no byte meanwhile. */
const COUNT_SPAN_MS = 30_000;
/** Each clone compares its wants with all the tips. */
const TIPS_MAX = 10_000;
/** How often git counts for a pack, in vain. */
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
  /** As `begin`, in a folder that may soon be moved or removed: only if the count can begin at once. */
  beginNow(view: ObjectView, pack: OpenPack, tips: readonly ObjectId[]): void;
  /** Begins to count what tips of a pack reach that refers to no other one. Calls `release` when it is done. */
  begin(view: ObjectView, pack: OpenPack, tips: readonly ObjectId[], release: () => void): void;
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
  /** Where the pack lies. */
  view: ObjectView;
  /** Whether it may move from there before git has opened it. */
  mayMove: boolean;
  /** Called when the view is not needed any more. */
  readonly releases: (() => void)[];
}

interface BeginOptions {
  readonly mayMove: boolean;
  readonly release: () => void;
}

export function createPackCounts(git: Git, log: GitLog): PackCounts {
  const counted = new LRUCache<string, Counted>(REMEMBERED);
  // One at a time: each takes a whole processor.
  let last: Promise<void> = Promise.resolve();
  let unfinished = 0;

  const begin = (view: ObjectView, pack: OpenPack, tips: readonly ObjectId[], { mayMove, release }: BeginOptions) => {
    const before = counted.get(keyOf(view, pack));
    if (before?.mayMove === true && !mayMove) {
      before.mayMove = false;
      before.view = view;
      if (before.state === 'counting') {
        before.releases.push(release);
        return;
      }
    }
    const isKnown = before !== undefined && (before.state !== 'part' || before.attempt >= ATTEMPTS_MAX);
    if (isKnown || !isWorth(pack, tips)) {
      release();
      return;
    }
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const made: Counted = {
      objectCount: pack.index.objectCount,
      tips: new Set(tips),
      state: unfinished === 0 ? 'counting' : 'waiting',
      ended,
      attempt: (before?.attempt ?? 0) + 1,
      view,
      mayMove,
      releases: [release],
    };
    counted.set(keyOf(view, pack), made);
    unfinished += 1;
    last = last
      .then(() => count(git, log, made))
      .then(() => {
        unfinished -= 1;
        for (const each of made.releases) each();
        resolve();
      });
  };

  return {
    begin: (view, pack, tips, release) => begin(view, pack, tips, { mayMove: false, release }),
    beginNow: (view, pack, tips) => {
      if (unfinished === 0) begin(view, pack, tips, { mayMove: true, release: () => undefined });
    },
    find: async ({ folder, packs, extendLease }, tips) => {
      const view = viewOf(folder);
      const [only] = packs;
      if (packs.length === 1 && only !== undefined && tips !== null) {
        begin(view, only, tips, { mayMove: false, release: extendLease() });
      }
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

/** Counts what the tips of a pack reach; again, if the pack was moved before git had opened it. */
async function count(git: Git, log: GitLog, made: Counted): Promise<void> {
  const { view } = made;
  made.state = 'counting';
  try {
    made.state = (await reachedCount(git, view, made.tips)) === made.objectCount ? 'whole' : 'part';
  } catch (error) {
    if (made.view !== view) return count(git, log, made);
    made.state = 'part';
    if (!made.mayMove) log.warn({ repository: view.key, error }, 'What a pack holds could not be counted');
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

async function reachedCount(git: Git, view: ObjectView, tips: ReadonlySet<ObjectId>): Promise<number> {
  const command: GitCommand = { args: ['rev-list', '--objects', '--count', '--stdin'], view, wallMsMax: COUNT_SPAN_MS };
  let printed = '';
  for await (const chunk of git.stream(command, lines(tips))) printed += chunk.toString('latin1');
  if (!/^\d+\n$/.test(printed)) throw new TypeError(`git rev-list printed ${JSON.stringify(printed)}`);
  return Number(printed);
}
