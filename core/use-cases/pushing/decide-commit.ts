/**
 * Decides a commit that is written over the API, on its repository as it is now: its tree, and the objects to push.
 *
 * Invariants: the writer names no object that a current ref does not reach: such a blob or start is refused as one that
 * is not there. Nothing is stored. What is decided again applies no change to something else than it was first applied
 * to. The trees that one commit reads are bounded; a commit that takes much memory holds one of the few turns for such
 * work, by the account, until its pack was read.
 */
import { commitBytes, readSignature } from '../../git/commit-bytes.ts';
import type { Commit, Signature } from '../../git/objects.ts';
import type { RefName } from '../../git/ref-name.ts';
import {
  type ChangedTree,
  type ChangeFault,
  type ChangeFaultCode,
  changeTree,
  type TreeChange,
  type Trees,
} from '../../git/tree-changes.ts';
import { KIB, MIB } from '../../kernel/byte-units.ts';
import type { FairSlots } from '../../kernel/fair-slots.ts';
import type { AccountId, ObjectId } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import type { StoredBlob } from '../../ports/new-contents.ts';
import type { NewObjects } from '../../ports/new-objects.ts';
import { ObjectDatabaseError, type ObjectReader } from '../../ports/object-database.ts';
import { currentTips } from '../reading/authorise-wants.ts';
import { closing, type ObjectsContext, openView } from '../reading/repository-view.ts';
import { isShortId, resolveRef } from '../reading/resolve-ref.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { faultOf, type RefFault } from './change-refs.ts';
import { createObjectsToPush, ObjectRefused, type ObjectsToPush } from './objects-to-push.ts';
import type { PushKey } from './push-refs.ts';

/** Bytes of the trees that one commit reads, and their entries. */
export const CHANGED_TREES_READ_BYTES_MAX = 32 * MIB;
export const CHANGED_ENTRIES_READ_MAX = 200_000;
/**
 * The bytes of trees that a commit reads take some ten times as much memory, those of its paths some two hundred times.
 * Internal: from this on a further commit of its account waits.
 */
const LARGE_TREES_BYTES_MIN = 256 * KIB;
const LARGE_PATHS_BYTES_MIN = 16 * KIB;
/** Bytes of contents between two turns of the event loop. Internal: it moves only when others have it. */
const TURN_BYTES = 256 * KIB;
/** What a content costs beside its bytes, in as many. */
const CONTENT_COST_BYTES = 512;

export interface DecideCommitContext extends ObjectsContext {
  readonly clock: Pick<Clock, 'nextTurn'>;
  readonly newObjects: NewObjects;
  /** For work that takes much memory, by the account. */
  readonly largeListings: FairSlots;
}

/** What a file is to hold: bytes, what lies on the disk, or the id of a blob that the repository has. */
export type WantedContent = Uint8Array | StoredBlob | ObjectId;

/** A change as its writer sends it. */
export type WantedChange =
  | Exclude<TreeChange, { readonly action: 'put' }>
  | (Omit<Extract<TreeChange, { readonly action: 'put' }>, 'blob'> & { readonly content: WantedContent });

export interface WantedCommit {
  readonly repository: FoundRepository;
  /** The short name of the branch as the caller sent it. */
  readonly branch: string;
  /** Its head. Null: the branch is not there; `any`: whatever it is; `any-head`: the same, if the branch is there. */
  readonly expected: ObjectId | null | 'any' | 'any-head';
  /** Where a new branch begins: a text as resolve-ref.ts reads it. Null: with no files. */
  readonly start: string | null;
  readonly message: string;
  readonly author: Signature;
  readonly committer: Signature;
  readonly changes: readonly WantedChange[];
  /** Whether a commit is made that changes nothing. */
  readonly allowEmpty: boolean;
  /** The key of the request, if it has one. */
  readonly key: PushKey | null;
  readonly signal: AbortSignal;
}

/** Why nothing was written. */
export type CommitFault =
  | { readonly at: 'branch'; readonly fault: RefFault }
  | { readonly at: 'start'; readonly code: 'start-not-found' | 'start-of-existing-branch' }
  | { readonly at: 'changes'; readonly code: 'changes-empty' }
  | (Omit<ChangeFault, 'field' | 'code'> & {
      readonly at: 'change';
      readonly field: ChangeFault['field'] | 'blob' | 'content';
      readonly code: ChangeFaultCode | 'blob-not-found' | 'content-refused';
    })
  /** git refuses the objects of the commit, e.g. a `.gitmodules`. */
  | { readonly at: 'objects'; readonly code: 'objects-refused'; readonly detail: string };

/** Returns the path that a fault of a change is about; undefined if there is no such change. */
export function pathAtFault(
  changes: readonly WantedChange[],
  { index, field }: Pick<Extract<CommitFault, { readonly at: 'change' }>, 'index' | 'field'>,
): Uint8Array | undefined {
  const change = changes[index];
  return field === 'to' && change?.action === 'move' ? change.to : change?.path;
}

export type Faulty = { readonly fault: CommitFault };

export interface Deciding extends WantedCommit {
  readonly ref: RefName;
  /** What was at the paths when it was first decided; null for the first time. */
  readonly seen: ChangedTree['seen'] | null;
}

export interface DecidedCommit {
  /** The head; null: the branch is not there. */
  readonly before: ObjectId | null;
  readonly parent: Commit | null;
  readonly commit: Commit;
  /** The part of the push that is about its bytes. */
  readonly pack: ObjectsToPush['pack'];
  readonly seen: ChangedTree['seen'];
  /** To be called when the pack is not read any more. */
  readonly release: () => void;
}

export async function decideCommit(context: DecideCommitContext, wanted: Deciding): Promise<DecidedCommit | Faulty> {
  const { repository, ref, expected, start, signal } = wanted;
  const { refs } = repository.entity.state;
  const before = refs.get(ref)?.id ?? null;
  const isAsExpected = expected === 'any' || (expected === 'any-head' ? before !== null : expected === before);
  if (!isAsExpected) {
    const code = before === null ? 'ref-missing' : expected === null ? 'ref-exists' : 'ref-moved';
    return { fault: { at: 'branch', fault: faultOf(ref, code, refs) } };
  }
  if (before !== null && start !== null) return { fault: { at: 'start', code: 'start-of-existing-branch' } };
  const turn = largeTurn(context.largeListings, repository.accountId, signal);
  try {
    const decided = await closing(openView(context, repository), async (view) => {
      const reader = await view.objects();
      const parent = before === null ? await startOf(repository, reader, start) : await reader.commit(before);
      if (parent === null && before !== null) throw new ObjectDatabaseError('layer-missing', `No commit ${before}`);
      return parent === 'not-found' ? START_NOT_FOUND : decideOn(context, wanted, { reader, before, parent, turn });
    });
    if ('fault' in decided) turn.release();
    return decided;
  } catch (error) {
    turn.release();
    if (!(error instanceof ObjectRefused)) throw error;
    return { fault: { at: 'objects', code: 'objects-refused', detail: error.message } };
  }
}

const START_NOT_FOUND: Faulty = { fault: { at: 'start', code: 'start-not-found' } };

/** A turn for work that takes much memory. */
interface Turn {
  /** Resolves when the work has it; later calls do nothing. */
  take(): Promise<void>;
  release(): void;
}

function largeTurn(slots: FairSlots, account: AccountId, signal: AbortSignal): Turn {
  let release: (() => void) | null = null;
  return {
    take: async () => {
      if (release === null) release = await slots.acquire(account, signal);
    },
    release: () => release?.(),
  };
}

async function startOf(
  repository: FoundRepository,
  reader: ObjectReader,
  start: string | null,
): Promise<Commit | null | 'not-found'> {
  if (start === null) return null;
  // Which commit a short id means may change before the request is sent again.
  if (isShortId(repository, start)) return 'not-found';
  const resolved = await resolveRef(repository, reader, start);
  return 'refused' in resolved ? 'not-found' : resolved.commit;
}

interface Base {
  readonly reader: ObjectReader;
  readonly before: ObjectId | null;
  readonly parent: Commit | null;
  readonly turn: Turn;
}

async function decideOn(
  context: DecideCommitContext,
  wanted: Deciding,
  { reader, before, parent, turn }: Base,
): Promise<DecidedCommit | Faulty> {
  const { author, committer, message } = wanted;
  const objects = createObjectsToPush(context.newObjects, turn.release);
  const changes = await treeChanges(context, wanted, { reader, objects });
  if ('fault' in changes) return changes;
  const pathsBytes = changes.reduce((sum, change) => {
    return sum + change.path.length + (change.action === 'move' ? change.to.length : 0);
  }, 0);
  if (pathsBytes >= LARGE_PATHS_BYTES_MIN) await turn.take();
  const trees = treesOf(context, { reader, objects, turn, signal: wanted.signal });
  const changed = await changeTree(trees, parent?.tree ?? null, changes);
  if ('fault' in changed) return { fault: changeFault(wanted, changed.fault) };
  const { tree, made, seen } = changed;
  for (const { id, bytes } of made) objects.add('tree', bytes, id);
  const written = { tree, parents: parent === null ? [] : [parent.id], author, committer, message };
  const id = objects.add('commit', commitBytes(written));
  const people = { author: readSignature(author), committer: readSignature(committer) };
  return { before, parent, commit: { id, ...written, ...people }, pack: objects.pack, seen, release: turn.release };
}

/** A change that did not name what it expects takes only what it was first decided on. */
function changeFault({ seen, changes }: Deciding, fault: ChangeFault): CommitFault {
  const isLate = seen !== null && fault.code === 'path-exists' && changes[fault.index]?.action === 'move';
  return { at: 'change', ...fault, code: isLate ? 'blob-moved' : fault.code };
}

async function treeChanges(
  { clock }: DecideCommitContext,
  { changes, seen, repository, signal }: Deciding,
  { reader, objects }: { readonly reader: ObjectReader; readonly objects: ObjectsToPush },
): Promise<readonly TreeChange[] | Faulty> {
  const named = changes.flatMap((change) => {
    return change.action === 'put' && typeof change.content === 'string' ? [change.content] : [];
  });
  const readable = await readableBlobs(repository, reader, [...new Set(named)]);
  const made: TreeChange[] = [];
  let cost = 0;
  for (const [index, change] of changes.entries()) {
    const first = seen?.[index];
    const expected = change.expected === 'any' && first !== undefined ? first : change.expected;
    if (change.action !== 'put') {
      made.push({ ...change, expected });
      continue;
    }
    const { content, action, path, mode } = change;
    const blob = typeof content === 'string' ? (readable.has(content) ? content : null) : added(objects, content);
    if (blob === null) {
      const isNamed = typeof content === 'string';
      const code = isNamed ? 'blob-not-found' : 'content-refused';
      return { fault: { at: 'change', index, field: isNamed ? 'blob' : 'content', code, found: null } };
    }
    made.push({ action, path, mode, expected, blob });
    cost += CONTENT_COST_BYTES + (content instanceof Uint8Array ? content.length : 0);
    if (cost < TURN_BYTES) continue;
    cost = 0;
    await clock.nextTurn();
    signal.throwIfAborted();
  }
  return made;
}

function added(objects: ObjectsToPush, content: Exclude<WantedContent, ObjectId>): ObjectId | null {
  try {
    return content instanceof Uint8Array ? objects.add('blob', content) : objects.addStored(content);
  } catch (error) {
    if (error instanceof ObjectRefused) return null;
    throw error;
  }
}

/** Returns those of the ids that are blobs which current refs reach. */
async function readableBlobs(
  { entity }: FoundRepository,
  reader: ObjectReader,
  ids: readonly ObjectId[],
): Promise<ReadonlySet<ObjectId>> {
  if (ids.length === 0) return new Set();
  const infos = await reader.lookup(ids);
  const blobs = infos.flatMap((info) => (info?.type === 'blob' ? [info.id] : []));
  if (blobs.length === 0 || entity.state.clean) return new Set(blobs);
  return reader.reachable(blobs, [...currentTips(entity.state)], String(entity.revision));
}

interface Reading extends Pick<Base, 'reader' | 'turn'> {
  readonly objects: ObjectsToPush;
  readonly signal: AbortSignal;
}

function treesOf({ clock }: DecideCommitContext, { reader, objects, turn, signal }: Reading): Trees {
  let [bytes, entries] = [0, 0];
  return {
    async read(id) {
      signal.throwIfAborted();
      const [info = null] = await reader.lookup([id]);
      bytes += info?.sizeBytes ?? 0;
      if (bytes > CHANGED_TREES_READ_BYTES_MAX) return null;
      if (bytes >= LARGE_TREES_BYTES_MIN) await turn.take();
      const page = await reader.tree(id, { offset: 0, limit: CHANGED_ENTRIES_READ_MAX - entries });
      if (page === null) throw new ObjectDatabaseError('layer-missing', `Tree ${id} is in none of the layers`);
      entries += page.total;
      return entries > CHANGED_ENTRIES_READ_MAX ? null : page.items;
    },
    name: (tree) => objects.name('tree', tree),
    nextTurn: clock.nextTurn,
  };
}
