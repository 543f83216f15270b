/**
 * Applies changes of files to a tree.
 *
 * Invariants: every change is judged against the tree as it was, so their order does not matter, and no path has two.
 * Only the trees that hold a changed path are read, each once, and only those that become others are made. Trees have
 * the ids that git gives them. The work is bounded by the names on the changed paths, and by `read`.
 */
import { EMPTY_TREE_ID, type ObjectId } from '../kernel/ids.ts';
import { finishInTurns, type NextTurn, sortInTurns } from '../kernel/turns.ts';
import { namesOfPath, type PathFault } from './file-path.ts';
import type { TreeEntry } from './objects.ts';
import { byTreeOrder, FOLDER_MODE, nameKey, writingTree, writtenMode } from './tree-bytes.ts';

/** Names on the paths of all changes of a commit, each counted once in its folder. */
export const CHANGED_NAMES_MAX = 50_000;
/** Names that are walked between two turns of the event loop. */
const TURN_NAMES = 500;

export type FileMode = '100644' | '100755' | '120000';

interface ChangeOfPath {
  readonly path: Uint8Array;
  /** The id of what is at the path. Null: nothing is there; `any`: whatever there is. */
  readonly expected: ObjectId | null | 'any';
}

/** `put` writes a file, `delete` and `move` take a file or a folder. */
export type TreeChange =
  | (ChangeOfPath & {
      readonly action: 'put';
      readonly blob: ObjectId;
      /** Null: that of the file that is there, or an ordinary file. */
      readonly mode: FileMode | null;
    })
  | (ChangeOfPath & { readonly action: 'delete' })
  | (ChangeOfPath & { readonly action: 'move'; readonly to: Uint8Array });

export type ChangeFaultCode =
  | PathFault
  /** Another change has the same path, or removes a folder that the path is in. */
  | 'path-changed-twice'
  /** What is there is not what was expected. */
  | 'blob-moved'
  | 'path-missing'
  /** A move does not replace anything. */
  | 'path-exists'
  /** A folder is where the file should be. */
  | 'path-is-folder'
  | 'path-is-submodule'
  /** A file or a submodule is where one of the path's folders should be. */
  | 'path-below-file'
  | 'changes-too-wide'
  /** The trees to read are too large. */
  | 'trees-too-large';

export interface ChangeFault {
  readonly code: ChangeFaultCode;
  /** That of the change. */
  readonly index: number;
  readonly field: 'path' | 'to';
  /** The id of what is there; null for nothing. */
  readonly found: ObjectId | null;
}

export interface MadeTree {
  readonly id: ObjectId;
  readonly bytes: Uint8Array;
}

export interface ChangedTree {
  readonly tree: ObjectId;
  /** The new trees, each once. */
  readonly made: readonly MadeTree[];
  /** For each change the id of what was at its path, null for nothing. */
  readonly seen: readonly (ObjectId | null)[];
}

export interface Trees {
  /** Returns the entries of a tree of the repository; null if that is more than may be read. */
  read(id: ObjectId): Promise<readonly TreeEntry[] | null>;
  /** Returns the id of a tree. */
  name(bytes: Uint8Array): ObjectId;
  readonly nextTurn: NextTurn;
}

/** A `root` of null is that of a commit without parents. */
export async function changeTree(
  trees: Trees,
  root: ObjectId | null,
  changes: readonly TreeChange[],
): Promise<ChangedTree | { readonly fault: ChangeFault }> {
  const top = touched(null, new Uint8Array(0));
  if (root !== null) top.found = { name: top.name, mode: FOLDER_MODE, id: root };
  try {
    const places = await placesOf(top, changes, trees.nextTurn);
    await read(trees, top);
    for (const place of places) markRemoved(place);
    for (const place of places) judge(place);
    const made = new Map<ObjectId, Uint8Array>();
    const result = await build(top, { ...trees, made });
    if (result === null) made.set(EMPTY_TREE_ID, new Uint8Array(0));
    return {
      tree: result?.id ?? EMPTY_TREE_ID,
      made: [...made].map(([id, bytes]) => ({ id, bytes })),
      seen: places.map(({ from }) => from.found?.id ?? null),
    };
  } catch (error) {
    if (error instanceof Unfit) return { fault: error.fault };
    throw error;
  }
}

/** Leaves the walks; it does not leave this file. */
class Unfit extends Error {
  override readonly name = 'Unfit';
  readonly fault: ChangeFault;
  constructor(code: ChangeFaultCode, { index, field }: By, found: TreeEntry | null = null) {
    super(code);
    this.fault = { code, index, field, found: found?.id ?? null };
  }
}

interface By {
  readonly index: number;
  readonly field: 'path' | 'to';
}

/** A file or folder that is on the path of a change, or was. */
interface Touched {
  readonly parent: Touched | null;
  readonly name: Uint8Array;
  readonly children: Map<string, Touched>;
  /** What the tree has there. */
  found: TreeEntry | null;
  /** The entries that no change touches, if it is a folder that was read. */
  rest: readonly TreeEntry[];
  /** The change that has exactly this path. */
  by: By | null;
  removed: boolean;
  placed: Pick<TreeEntry, 'mode' | 'id'> | null;
}

interface Place {
  readonly change: TreeChange;
  readonly from: Touched;
  readonly by: By;
  /** Null for what is not moved. */
  readonly to: Touched | null;
}

function touched(parent: Touched | null, name: Uint8Array): Touched {
  return { parent, name, children: new Map(), found: null, rest: [], by: null, removed: false, placed: null };
}

async function placesOf(top: Touched, changes: readonly TreeChange[], nextTurn: NextTurn): Promise<readonly Place[]> {
  let [made, walked] = [0, 0];
  const placeOf = async (path: Uint8Array, by: By): Promise<Touched> => {
    const names = namesOfPath(path);
    if (typeof names === 'string') throw new Unfit(names, by);
    let at = top;
    for (const name of names) {
      const key = nameKey(name);
      let next = at.children.get(key);
      if (next === undefined) {
        made += 1;
        if (made > CHANGED_NAMES_MAX) throw new Unfit('changes-too-wide', by);
        next = touched(at, name);
        at.children.set(key, next);
      }
      at = next;
      walked += 1;
      if (walked % TURN_NAMES === 0) await nextTurn();
    }
    if (at.by !== null) throw new Unfit('path-changed-twice', by);
    at.by = by;
    return at;
  };
  const places: Place[] = [];
  for (const [index, change] of changes.entries()) {
    const by = { index, field: 'path' } as const;
    const from = await placeOf(change.path, by);
    const to = change.action === 'move' ? await placeOf(change.to, { index, field: 'to' }) : null;
    places.push({ change, from, by, to });
  }
  return places;
}

/** Reads the folders that are on the way to a change. */
async function read(trees: Trees, node: Touched): Promise<void> {
  if (node.children.size === 0 || node.found?.mode !== FOLDER_MODE) return;
  const entries = await trees.read(node.found.id);
  if (entries === null) throw new Unfit('trees-too-large', someBelow(node));
  const rest: TreeEntry[] = [];
  for (const [index, entry] of entries.entries()) {
    const child = node.children.get(nameKey(entry.name));
    if (child === undefined) rest.push(entry);
    else child.found = entry;
    if (index % TURN_NAMES === TURN_NAMES - 1) await trees.nextTurn();
  }
  node.rest = rest;
  for (const child of node.children.values()) await read(trees, child);
}

/** A change below a name that is not itself changed. */
function someBelow(node: Touched): By {
  let at = node;
  for (;;) {
    const [child] = at.children.values();
    if (child === undefined || (at !== node && at.by !== null)) break;
    at = child;
  }
  if (at.by === null) throw new TypeError('Every path ends with a change');
  return at.by;
}

function markRemoved({ change, from }: Place): void {
  from.removed = change.action !== 'put';
}

function isFolder(entry: Pick<TreeEntry, 'mode'> | null): boolean {
  return entry?.mode === FOLDER_MODE;
}

function judge({ change, from, by, to }: Place): void {
  const { found } = from;
  if (change.expected !== 'any' && change.expected !== (found?.id ?? null)) throw new Unfit('blob-moved', by, found);
  refuseInRemoved(from, by);
  if (found?.mode === '160000') throw new Unfit('path-is-submodule', by, found);
  if (change.action === 'put') {
    // Whether other changes empty the folder is known when it is made.
    if (isFolder(found) && from.children.size === 0) throw new Unfit('path-is-folder', by, found);
    const standing = found === null || isFolder(found) ? '100644' : writtenMode(found.mode);
    from.placed = { mode: change.mode ?? standing, id: change.blob };
    return;
  }
  if (found === null) throw new Unfit('path-missing', by);
  if (to === null) return;
  const toBy: By = { index: by.index, field: 'to' };
  refuseInRemoved(to, toBy);
  if (to.found !== null) throw new Unfit('path-exists', toBy, to.found);
  to.placed = { mode: writtenMode(found.mode), id: found.id };
}

function refuseInRemoved(node: Touched, by: By): void {
  for (let at = node.parent; at !== null; at = at.parent) {
    if (at.removed && isFolder(at.found)) throw new Unfit('path-changed-twice', by, node.found);
  }
}

type Building = Trees & { readonly made: Map<ObjectId, Uint8Array> };

/** Returns what is at the path after all changes; null for nothing. */
async function build(node: Touched, building: Building): Promise<TreeEntry | null> {
  const { name, found, placed } = node;
  const own = placed === null ? (node.removed ? null : found) : { name, ...placed };
  if (node.children.size === 0) return own;
  const entries = [...node.rest];
  let isChanged = false;
  for (const child of node.children.values()) {
    const made = await build(child, building);
    if (made !== null && own !== null && placed === null && !isFolder(own)) {
      throw new Unfit('path-below-file', child.by ?? someBelow(child), found);
    }
    isChanged ||= !isSame(made, child.found);
    if (made !== null) entries.push(made);
  }
  if (own !== null && (placed !== null || !isFolder(own))) {
    if (entries.length > 0 && node.by !== null) throw new Unfit('path-is-folder', node.by, found);
    return own;
  }
  if (own !== null && !isChanged) return own;
  if (entries.length === 0) return null;
  const sorted = await sortInTurns(entries, byTreeOrder, building.nextTurn);
  const bytes = await finishInTurns(writingTree(sorted), building.nextTurn);
  const id = building.name(bytes);
  if (id !== own?.id) building.made.set(id, bytes);
  return { name, mode: FOLDER_MODE, id };
}

function isSame(made: TreeEntry | null, found: TreeEntry | null): boolean {
  if (made === null || found === null) return made === found;
  return made.id === found.id && writtenMode(made.mode) === writtenMode(found.mode);
}
