/**
 * Finds whether a pack in quarantine holds more than its push leads to: objects that the committed layers do not hold
 * and that no accepted tip reaches. Nobody may be served them (docs/git-path.md, Push).
 *
 * Invariants: it says no only if every object of the pack is committed or reached. What the tips reach and no
 * committed layer holds lies in the pack, since the pack is connected and the layers are closed under reachability. So
 * it is enough to compare counts. Objects that a client sent again, and bases that git appended, are committed.
 */
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { PackRefusedError } from '../../../core/git/pack-refusal.ts';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { isBeyondBounds } from '../../../core/ports/object-database.ts';
import { createTurns } from '../packs/event-loop-turns.ts';
import { lines } from '../packs/git-objects.ts';
import type { OpenPack } from '../packs/object-source.ts';
import { hasObject, isInAny, LOOKUPS_MAX, LOOKUPS_TURN_MS } from '../packs/pack-lookups.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';
import type { ProcessEnd } from '../process/process-runner.ts';
import { boundBy } from './index-pack.ts';
import type { PackAdmission, PushMemory } from './push-memory.ts';
import { revisions } from './trim-pack.ts';

/** What the check of a received pack found out. It holds for the layers that the pack was checked against then. */
export interface SentObjects {
  /** The number of objects that the client sent. What the pack holds beyond them are committed bases. */
  readonly count: number;
  readonly bytes: number;
  /** Whether the pack was whole and in memory when its check began. */
  readonly isSmall: boolean;
  /** The sent objects to which no other one of them refers, all of which are new; null where git has to look. */
  readonly unreferenced: readonly ObjectId[] | null;
}

export interface PackToCompare {
  readonly git: Git;
  readonly pushMemory: PushMemory;
  readonly pack: OpenPack;
  /** Null when the pack was written again or the layers have changed since the check. */
  readonly sent: SentObjects | null;
  /** The packs of the committed layers. */
  readonly committed: readonly OpenPack[];
  /** The pack's objects, and the committed ones as its alternates. */
  readonly view: ObjectView;
}

export interface PushedTips {
  readonly tips: readonly ObjectId[];
  /** Some tips of the committed layers, at which the walk of what the tips reach may end. */
  readonly known: Iterable<ObjectId>;
  readonly signal: AbortSignal;
}

/** Throws a `PackRefusedError` if git cannot walk what the tips reach within the bounds of a push. */
export async function holdsLeftOver(compared: PackToCompare, pushed: PushedTips): Promise<boolean> {
  const { pack, sent } = compared;
  if (sent !== null && sent.unreferenced !== null) {
    const tips = new Set(pushed.tips);
    return sent.unreferenced.some((id) => !tips.has(id));
  }
  const reached = await newlyReachedCount(compared, pushed);
  if (reached === pack.index.objectCount || reached === sent?.count) return false;
  return hasMoreNew(compared, reached, pushed.signal);
}

/** Counts what the tips reach and the committed layers do not hold. */
async function newlyReachedCount(compared: PackToCompare, pushed: PushedTips): Promise<number> {
  const { pack, sent, pushMemory } = compared;
  const { objectCount } = pack.index;
  const first = sent?.isSmall === true ? pushMemory.small(objectCount) : pushMemory.large(objectCount);
  for (const admission of [first, pushMemory.largest(objectCount)]) {
    const count = await countOnce(compared, pushed, admission);
    if (count !== 'outgrown') return count;
  }
  throw new PackRefusedError(TAKES_TOO_MUCH);
}

const TAKES_TOO_MUCH: PackRefusal = {
  refused: 'pack-too-costly',
  detail: 'git takes more memory or time than a push may to walk what its refs reach',
};

/** A way in which git counts what it is given, and where the number stands in what it prints. */
interface Counting {
  readonly args: readonly string[];
  readonly input: (pushed: PushedTips) => AsyncIterable<Buffer>;
  /** Returns the number; null if it is not printed yet. */
  readonly read: (printed: Buffer) => number | null;
}

/** Without committed layers everything that the tips reach is new, and git has to choose no order for a pack. */
const OF_FIRST_PACK: Counting = {
  args: ['rev-list', '--objects', '--count', '--stdin'],
  input: ({ tips }) => lines(tips),
  read: (printed) => (printed.at(-1) === LINE_FEED ? Number(printed.toString('latin1')) : null),
};

/** A pack begins with `PACK`, its version and the number of its objects (gitformat-pack(5)). */
const COUNT_OFFSET = 8;
const HEADER_BYTES = 12;
const LINE_FEED = 0x0a;

/** git counts before it writes, and is ended then. With --local it counts nothing that a committed layer holds. */
const BESIDE_LAYERS: Counting = {
  args: ['pack-objects', '--revs', '--local', '--stdout', '--window=0', '-q'],
  input: ({ tips, known }) => revisions(tips, known),
  read: (printed) => (printed.length < HEADER_BYTES ? null : printed.readUInt32BE(COUNT_OFFSET)),
};

async function countOnce(
  { git, view, pack, sent, committed }: PackToCompare,
  pushed: PushedTips,
  admission: PackAdmission,
): Promise<number | 'outgrown'> {
  const { args, input, read } = committed.length === 0 ? OF_FIRST_PACK : BESIDE_LAYERS;
  const bounds = boundBy(admission, () => sent?.bytes ?? pack.file.file.sizeBytes);
  const command: GitCommand = { args, view, signal: pushed.signal, ...bounds };
  const ends: ProcessEnd[] = [];
  const accepts = (end: ProcessEnd) => ends.push(end) > 0 && end.code === 0;
  let printed = Buffer.alloc(0);
  try {
    for await (const chunk of git.stream(command, input(pushed), accepts)) {
      printed = Buffer.concat([printed, chunk]);
      const count = read(printed);
      if (count !== null) return count;
    }
  } catch (error) {
    if (ends.some(({ outgrown }) => outgrown)) return 'outgrown';
    // git follows folders in folders by recursion, up to the end of its stack.
    if (isBeyondBounds(error) || ends.some((end) => end.signal === 'SIGSEGV')) {
      throw new PackRefusedError(TAKES_TOO_MUCH);
    }
    throw error;
  }
  throw new TypeError(`git ${args[0]} did not count`);
}

/** Whether the pack holds more than this many objects that are in no committed layer. */
async function hasMoreNew(
  { pack: { index }, committed }: Pick<PackToCompare, 'pack' | 'committed'>,
  reached: number,
  signal: AbortSignal,
): Promise<boolean> {
  // A pack that takes more look-ups is written again, which is as right.
  if (index.objectCount * committed.length > LOOKUPS_MAX) return true;
  const indexes = committed.map((one) => one.index);
  let found = 0;
  const isOneTooMany = async (id: Uint8Array): Promise<boolean> => {
    if (await isInAny(indexes, id)) return false;
    found += 1;
    return found > reached;
  };
  return hasObject(index, isOneTooMany, createTurns(LOOKUPS_TURN_MS, signal));
}
