/**
 * Checks the inflated sizes of the objects of a pack in quarantine (core/git/object-bounds.ts), and that git can read
 * them: git index-pack takes entries that every other command of git calls corrupt, and no clone would end well.
 *
 * Invariants: only headers are inflated here: an entry's own, and for a delta the size of its result. So the cost
 * does not depend on the inflated sizes, and of a large pack only the pages that hold headers are read.
 */
import { MANY_PARENTS_BYTES_MIN, parentsFault, sizeFault } from '../../../core/git/object-bounds.ts';
import type { ObjectInfo, ObjectType } from '../../../core/git/objects.ts';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import { OBJECT_ID_DIGITS, OBJECT_ID_PATTERN, type ObjectId, objectId } from '../../../core/kernel/ids.ts';
import { COMMIT_PARENTS_MAX } from '../../../core/kernel/limits.ts';
import { lines } from '../packs/git-objects.ts';
import type { OpenPack } from '../packs/object-source.ts';
import { isBrokenPack } from '../packs/pack-file.ts';
import type { Git, GitCommand, ObjectView } from '../process/git-commands.ts';

/** Commits of one push that are large enough to have too many parents, so that each of them must be read. */
export const PUSH_LARGE_COMMITS_MAX = 10_000;

/**
 * git checks larger packs: a delta's header takes some 30 us in process, and 1 us in git after its start. Internal:
 * both ways refuse the same objects.
 */
const IN_PROCESS_OBJECTS_MAX = 100;

export interface PackToCheck {
  readonly git: Git;
  readonly pack: OpenPack;
  /** What the client sent, if that is known already. */
  readonly sent: readonly ObjectInfo[] | null;
  /** The number of objects that the client sent. The ones after them are committed delta bases, added by index-pack. */
  readonly sentObjects: number;
  /** The pack's objects only. */
  readonly alone: ObjectView;
  /** The pack's objects and the committed ones. */
  readonly whole: ObjectView;
  readonly signal: AbortSignal;
}

/** An object of the pack that cannot be read. */
interface Unreadable {
  readonly id: ObjectId;
  readonly type: null;
}

/** A check that goes on while its pack is made ready to be stored. */
export interface BoundsCheck {
  /** What `refuseLargeObjects` resolves with. */
  readonly refusal: Promise<PackRefusal | null>;
  /** Stops the check if it goes on. Resolves when it reads the pack no more. */
  end(): Promise<void>;
}

/** Whether git has to list the objects, which takes a while. */
export function needsGit({ pack, sent }: Pick<PackToCheck, 'pack' | 'sent'>): boolean {
  return sent === null && pack.index.objectCount > IN_PROCESS_OBJECTS_MAX;
}

export function beginBoundsCheck(checked: PackToCheck): BoundsCheck {
  const stop = new AbortController();
  const refusal = refuseLargeObjects({ ...checked, signal: AbortSignal.any([checked.signal, stop.signal]) });
  // A failure is told to whoever waits for the outcome; a push that ends early does not.
  const settled = Promise.allSettled([refusal]);
  return {
    refusal,
    end: async () => {
      stop.abort(new Error('The quarantine has ended'));
      await settled;
    },
  };
}

/** Null when every object can be read and is within its bounds. */
export async function refuseLargeObjects(checked: PackToCheck): Promise<PackRefusal | null> {
  // A set: when a chain of deltas is too long to read in process, git lists every object again from the start.
  const large = new Set<ObjectId>();
  for await (const info of checked.sent ?? infosOf(checked)) {
    if (info.type === null) return { refused: 'pack-broken', detail: `object ${info.id} cannot be read` };
    const fault = sizeFault(info);
    if (fault !== null) return { refused: 'pack-object-too-large', detail: fault };
    if (info.type !== 'commit' || info.sizeBytes < MANY_PARENTS_BYTES_MIN) continue;
    large.add(info.id);
    if (large.size <= PUSH_LARGE_COMMITS_MAX) continue;
    const detail = `the pack has more than ${PUSH_LARGE_COMMITS_MAX} commits of ${MANY_PARENTS_BYTES_MIN} bytes or more`;
    return { refused: 'pack-object-too-large', detail };
  }
  const commit = large.size === 0 ? null : await commitOfManyParents(checked, [...large]);
  return commit === null ? null : { refused: 'pack-object-too-large', detail: parentsFault(commit) };
}

async function* infosOf(checked: PackToCheck): AsyncGenerator<ObjectInfo | Unreadable> {
  const { pack, sentObjects } = checked;
  const places = needsGit(checked) ? null : pack.index.resident();
  if (places === null) {
    yield* infosByGit(checked);
    return;
  }
  const sent = places.toSorted((a, b) => a.offset - b.offset).slice(0, sentObjects);
  for (const { id, offset } of sent) {
    const info = await infoOf(pack, offset);
    if (info === 'broken') {
      yield { id, type: null };
      return;
    }
    // The chain of deltas is too long to follow in process: git lists all the objects instead.
    if (info === null) {
      yield* infosByGit(checked);
      return;
    }
    yield { id, ...info };
  }
}

async function infoOf({ file }: OpenPack, offset: number) {
  try {
    return await file.info(offset);
  } catch (error) {
    if (!isBrokenPack(error)) throw error;
    return 'broken';
  }
}

/** What git prints of each object. It prints `<id> missing` of one whose header it cannot read. */
const LISTED = '%(objecttype) %(objectsize) %(objectname)';
const LISTED_LINE = new RegExp(`^(commit|tree|blob|tag) (\\d+) (${OBJECT_ID_PATTERN})$`);

/**
 * In the order of the pack (git-cat-file(1), --unordered), in which the client sent them; without the objects that are
 * surely within every bound.
 */
async function* infosByGit({ git, alone, sentObjects, signal }: PackToCheck): AsyncGenerator<ObjectInfo | Unreadable> {
  const args = ['cat-file', '--batch-all-objects', '--unordered', '--buffer', `--batch-check=${LISTED}`];
  const command: GitCommand = { args, view: alone, signal };
  let rest = Buffer.alloc(0);
  let left = sentObjects;
  for await (const chunk of git.stream(command, lines([]))) {
    const bytes = Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
      if (left === 0) return;
      left -= 1;
      if (mayBreakBound(bytes, start, end)) yield parseListed(bytes.toString('latin1', start, end));
      start = end + 1;
    }
    rest = bytes.subarray(start);
  }
}

const LINE_FEED = 0x0a;
const SPACE = 0x20;
const START_OF_BLOB = 'b'.charCodeAt(0);
/** No id ends with it. */
const END_OF_MISSING = 'g'.charCodeAt(0);
/**
 * Digits of the size of a commit that has room for too many parents. Internal: it follows from
 * `MANY_PARENTS_BYTES_MIN`.
 */
const SIZE_DIGITS_MIN = String(MANY_PARENTS_BYTES_MIN).length;

/** Whether this line needs to be parsed. A push may bring millions of objects, of which hardly any does. */
function mayBreakBound(bytes: Buffer, start: number, end: number): boolean {
  if (bytes[end - 1] === END_OF_MISSING) return true;
  if (bytes[start] === START_OF_BLOB) return false;
  const sizeStart = bytes.indexOf(SPACE, start) + 1;
  const sizeEnd = end - 1 - OBJECT_ID_DIGITS;
  return sizeEnd - sizeStart >= SIZE_DIGITS_MIN;
}

function parseListed(line: string): ObjectInfo | Unreadable {
  const [, type, size, id] = LISTED_LINE.exec(line) ?? [];
  if (id === undefined) return { id: objectId(line.slice(0, OBJECT_ID_DIGITS)), type: null };
  return { id: objectId(id), type: type as ObjectType, sizeBytes: Number(size) };
}

/** Finds one of these commits that has too many parents, or null. git does it, as it reads each in bounded memory. */
async function commitOfManyParents(
  { git, whole, signal }: PackToCheck,
  commits: readonly ObjectId[],
): Promise<string | null> {
  const args = ['rev-list', '--no-walk=unsorted', `--min-parents=${COMMIT_PARENTS_MAX + 1}`, '--stdin'];
  const command: GitCommand = { args, view: whole, signal };
  let found = '';
  for await (const chunk of git.stream(command, lines(commits))) {
    found += chunk.toString('latin1');
    if (found.includes('\n')) return found.slice(0, found.indexOf('\n'));
  }
  return null;
}
