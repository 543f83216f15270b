/**
 * Git objects on this node: a cache filled from layers, and the native git processes that work in it.
 *
 * Invariants:
 * - the cache is never the truth: the node may drop it at any moment and refills it from the layer store. It checks
 *   each layer against the SHA-256 in its event before it uses a byte of it;
 * - a push is checked against exactly the layers it names (docs/architecture.md, invariant 3). Its objects stay in
 *   quarantine, invisible to every reader, until `install`;
 * - every git process holds a lease on its repository while it runs, and is killed with the request that it serves.
 */
import type { Commit, FoundTip, ObjectInfo, TagObject, TreeEntry } from '../git/objects.ts';
import type { PackRefusal } from '../git/pack-refusal.ts';
import type { Sequence } from '../kernel/append-list.ts';
import { CodedError } from '../kernel/coded-error.ts';
import type { ObjectId, RepositoryId } from '../kernel/ids.ts';
import type { Page, PageOf } from '../kernel/page.ts';
import type { Layer } from '../repository/layer.ts';
import type { LayerPlace } from './layer-stores.ts';
import type { ObjectHistory } from './object-history.ts';
import type { ObjectSearch } from './object-search.ts';

/** The objects of a repository at one revision of its stream: exactly these layers, no others. */
export interface CommittedObjects {
  readonly repository: RepositoryId;
  /** It never changes. */
  readonly place: LayerPlace;
  /** The revision of the repository's stream whose refs are read. The layers may be those of a later one. */
  readonly revision: number | 'none';
  /** Raised by every event that removes layers. While it does not change, layers are only added at the end. */
  readonly shrinkEpoch: number;
  /** The shrink epoch since which no object was dropped: these layers hold all that they held then. Null: not known. */
  readonly keptSinceEpoch: number | null;
  readonly layers: Sequence<Layer>;
}

export interface ReceivePackOptions {
  readonly objects: CommittedObjects;
  /**
   * The raw pack. It is read to its end even if the pack is refused, so that the client reads the answer, but no
   * further than `packSizeBytesMax`, where it is closed. If the stream fails, the push fails with its error and leaves
   * no files.
   */
  readonly pack: AsyncIterable<Uint8Array>;
  readonly packSizeBytesMax: number;
  readonly objectCountMax: number;
  /** Aborted when the client disconnects: the process is killed and the quarantine removed. */
  readonly signal: AbortSignal;
  /** Called when the whole pack was received and its check goes on: the caller may start to send keep-alives. */
  readonly onEndOfInput?: () => void;
}

/** The bytes of a layer's tar, ready for a layer store. `body` may be called any number of times. */
export interface LayerContent {
  readonly sizeBytes: number;
  body(): AsyncIterable<Uint8Array>;
  /** Returns the SHA-256 of the body, hex. Call it after a body was read to its end. */
  sha256(): string;
}

/** Where a ref was and where it is to be. */
export interface RefMove {
  readonly before: ObjectId;
  readonly after: ObjectId;
}

/**
 * A pack that is not yet part of the repository. It passed every check but one, which may go on: that of the sizes of
 * a large pack's objects. Until it is done, the other methods than `tips` and `layer` wait, and so does the last chunk
 * of a layer's body, so that no layer is stored of a pack that fails it. They throw
 * `PackRefusedError` (core/git/pack-refusal.ts) then.
 *
 * The first call of `install` or `discard` ends the quarantine; later calls do nothing.
 */
export interface Quarantine {
  /** The checksum of the pack, hex, and the number of its objects; `keepReached` changes both. */
  readonly pack: string;
  readonly objectCount: number;
  readonly receivedBytes: number;
  /**
   * Looks tips up in this pack, then in the committed layers that it was last checked against. Throws
   * `object-too-large` for a tag in these layers that is larger than a push may bring today.
   */
  tips(ids: readonly ObjectId[]): Promise<readonly FoundTip[]>;
  /** Returns the committer's date of each of these commits, in seconds, as `Signature` has it. */
  commitSeconds(ids: readonly ObjectId[]): Promise<ReadonlyMap<ObjectId, number>>;
  /**
   * Returns for each move whether `after`, a commit in this pack or in the committed layers, reaches `before`, which
   * may be any id. Refuses moves that would take too long to compare.
   */
  compareMoves(moves: readonly RefMove[], signal: AbortSignal): Promise<readonly boolean[] | PackRefusal>;
  /** Does what `ObjectHistory` does, with objects of this pack and of the committed layers. */
  readonly diff: ObjectHistory['diff'];
  /**
   * Returns the layer's tar, in the form of docs/architecture.md, Storage: pack, idx, `updates` and `layer.json`.
   * `updates` are this push's `<after> <ref> [<peeled>]` lines.
   */
  layer(
    updates: readonly string[],
    description: { readonly [key: string]: string | number | null },
  ): Promise<LayerContent>;
  /**
   * Returns whether the pack holds an object that neither these tips reach nor the committed layers hold, against which
   * it was last checked. The walk of what the tips reach may end at `known`, some tips of these layers. Throws a
   * `PackRefusedError` if it takes more than a push may.
   */
  leavesOver(tips: readonly ObjectId[], known: Iterable<ObjectId>, signal: AbortSignal): Promise<boolean>;
  /**
   * Leaves out of the pack what these tips do not reach, and what is committed already. `known` are tips of the
   * committed layers that it was last checked against. Call it before `layer`.
   */
  keepReached(tips: readonly ObjectId[], known: Iterable<ObjectId>, signal: AbortSignal): Promise<void>;
  /** Checks the pack again, `--strict`, against another set of layers. Call it after the shrink epoch has changed. */
  recheck(objects: CommittedObjects): Promise<PackRefusal | null>;
  /**
   * Links the pack into this node's cache as this layer, after the commit. A failure is logged, not thrown: the push is
   * committed, and the next reader fetches the layer from the store.
   */
  install(layer: Layer): Promise<void>;
  discard(): Promise<void>;
}

/** The refs that a fetch may see, which upload-pack reads as a repository. Equal keys mean equal refs. */
export interface RefsView {
  /** Names this set of refs within the repository, e.g. its stream's revision. */
  readonly key: string;
  /** The full name of the branch that HEAD points to, even if that branch does not exist. */
  readonly head: string;
  /** In byte order of names, in runs. `peeled` is set for annotated tags only. */
  readonly runs: readonly (readonly {
    readonly name: string;
    readonly id: ObjectId;
    readonly peeled: ObjectId | null;
  }[])[];
}

/** A request for all that some objects reach, by a client that has nothing. */
export interface PlainClone {
  readonly wants: readonly ObjectId[];
  /** Whether the client also takes the annotated tags that lead to what it gets. */
  readonly includeTag: boolean;
}

export interface UploadPackOptions {
  readonly view: RefsView;
  readonly protocol: 0 | 1 | 2;
  /** The whole request body. The caller must have authorised its wants. */
  readonly request: AsyncIterable<Uint8Array>;
  /**
   * Names the answer within the repository: requests with the same key get the same bytes, so the node may keep the
   * answer and send it to the next one. Null if the answer must not be kept: too large, or not worth it.
   */
  readonly answerKey: string | null;
  /**
   * Set if the request is a plain clone, on a side band of 64 KiB and with deltas by offset: then it may be answered
   * from stored packs.
   */
  readonly clone?: PlainClone | null;
  /** Set by a caller that is done with each chunk when it asks for the next: its bytes may then be written over. */
  readonly mayOverwrite?: boolean;
  readonly signal: AbortSignal;
}

/** An answer of upload-pack that the node has in memory, for all who read it: nobody may change its bytes. */
export interface HeldAnswer {
  readonly bytes: Uint8Array;
  /** Call it when the bytes are not read any more: they take memory until then. Idempotent. */
  release(): void;
}

export interface WalkOptions {
  readonly include: readonly ObjectId[];
  readonly exclude: readonly ObjectId[];
  readonly skip?: number;
  readonly limit?: number;
  /** When aborted, the walk ends with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Reads one repository under a lease. The caller must close it, or the repository is never evicted. */
export interface ObjectReader {
  /** Returns each object's type and size, null for a missing one. Runs in-process; inflates no more than a header. */
  lookup(ids: readonly ObjectId[]): Promise<readonly (ObjectInfo | null)[]>;
  /** Returns the first ids of objects that begin with these lower-case hex digits, in order, at most `limit`. */
  startingWith(digits: string, limit: number): Promise<readonly ObjectId[]>;
  tips(ids: readonly ObjectId[]): Promise<readonly FoundTip[]>;
  /** Throws `object-too-large` for an object above the size limits of a push; so do all calls up to `entry`. */
  commit(id: ObjectId): Promise<Commit | null>;
  commits(ids: readonly ObjectId[]): Promise<readonly (Commit | null)[]>;
  /** Returns the committer's date of each of the commits, in seconds, as `Signature` has it. */
  commitSeconds(ids: readonly ObjectId[]): Promise<ReadonlyMap<ObjectId, number>>;
  tag(id: ObjectId): Promise<TagObject | null>;
  /** Returns a page of the entries of a tree, in git's order; null if there is no such tree. So does `entry`. */
  tree(id: ObjectId, page: Page): Promise<PageOf<TreeEntry> | null>;
  /** Returns the entry of this name; null if the tree has none. */
  entry(tree: ObjectId, name: Uint8Array): Promise<TreeEntry | null>;
  /** Streams the bytes of an existing blob, or a range of them cut to its end, in constant memory. */
  blob(id: ObjectId, range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
  /** Returns the commits that `include` reaches and `exclude` does not, in git's default order: newest date first. */
  walk(options: WalkOptions): AsyncIterable<ObjectId>;
  /**
   * Returns how many commits the tip reaches, itself included. Throws `reading-too-costly` if that takes too long. Few
   * counts run at the same time.
   */
  count(tip: ObjectId): Promise<number>;
  isAncestor(ancestor: ObjectId, descendant: ObjectId): Promise<boolean>;
  readonly history: ObjectHistory;
  readonly search: ObjectSearch;
  /** Returns those of the ids that the tips reach: commits, trees, blobs and tags alike. Equal keys mean equal tips. */
  reachable(ids: readonly ObjectId[], tips: readonly ObjectId[], tipsKey: string): Promise<ReadonlySet<ObjectId>>;
  /**
   * Streams the body of git upload-pack's stateless answer. Ending the iteration early kills the process. It ends
   * without an error only if git did, or if the whole answer is an ERR packet, which is how git refuses a request.
   */
  uploadPack(options: UploadPackOptions): AsyncIterable<Uint8Array>;
  /** Streams what a commit changed as text. Ending the iteration early kills the process. */
  commitText(options: CommitTextOptions): AsyncIterable<Uint8Array>;
  /**
   * Returns whether an archive of this commit may hold names of refs, because an attribute `export-subst` stands in one
   * of its .gitattributes.
   */
  archiveReadsRefs(commit: ObjectId, signal: AbortSignal): Promise<boolean>;
  /** Streams an archive of the files of a commit or a tree. Ending the iteration early kills the process. */
  archive(options: ArchiveOptions): AsyncIterable<Uint8Array>;
  close(): void;
}

/** `diff` is what `git apply` takes; `patch` is a mail that `git am` takes, empty for a merge and an empty commit. */
export type CommitTextForm = 'diff' | 'patch';

export interface CommitTextOptions {
  readonly commit: ObjectId;
  /** The first parent; null for a root commit. */
  readonly parent: ObjectId | null;
  readonly form: CommitTextForm;
  readonly signal: AbortSignal;
  /** Called when git has made all of it, or ended; the reader may still be reading. */
  readonly onMade?: () => void;
}

export type ArchiveFormat = 'tar.gz' | 'zip';

export interface ArchiveOptions {
  /** A commit or a tree. */
  readonly tip: ObjectId;
  /** The refs that it may name; null for none. */
  readonly refs: RefsView | null;
  readonly format: ArchiveFormat;
  /** The folder, with its slash, that holds everything. */
  readonly prefix: string;
  readonly signal: AbortSignal;
  /** Called when git has made all of it, or ended; the reader may still be reading. */
  readonly onMade?: () => void;
}

export type ObjectDatabaseErrorCode =
  /** A layer's bytes do not have the SHA-256 in its event; the message names the layer and its key. */
  | 'layer-corrupt'
  | 'layer-missing'
  | 'object-database-unavailable'
  /**
   * An object that an older version accepted is above the limits of core/git/object-bounds.ts, or git cannot hold one
   * in the memory of a search. A retry fails again.
   */
  | 'object-too-large'
  /** git reached its limit of memory or time on this repository's objects. A retry fails again. */
  | 'reading-too-costly';

export class ObjectDatabaseError extends CodedError<ObjectDatabaseErrorCode> {
  override readonly name = 'ObjectDatabaseError';
}

/** Whether reading failed at a limit: a retry needs as much and fails again. */
export function isBeyondBounds(error: unknown): boolean {
  return (
    error instanceof ObjectDatabaseError && (error.code === 'object-too-large' || error.code === 'reading-too-costly')
  );
}

export interface ObjectDatabase {
  /** Receives a push's pack in quarantine and checks it completely: `index-pack --strict`, limits, connectivity. */
  receive(options: ReceivePackOptions): Promise<Quarantine | PackRefusal>;
  /** Opens the repository for reading, after fetching and checking the layers that this node lacks. */
  open(objects: CommittedObjects): Promise<ObjectReader>;
  /** Returns the answer of this key (`UploadPackOptions`) if it is in memory. The caller must have authorised it. */
  heldAnswer(repository: RepositoryId, answerKey: string): HeldAnswer | null;
  /** Drops a repository's cached objects, e.g. after its deletion. Does not wait for leases: eviction follows them. */
  drop(repository: RepositoryId): Promise<void>;
}
