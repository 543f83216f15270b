/**
 * Git objects on this node: a cache filled from layers, and the native git that works in it.
 *
 * Must stay true:
 * - the cache is never the truth: it may be dropped at any moment and is refilled from the layer store, each
 *   layer checked against the SHA-256 of its event before a byte of it is used;
 * - a push is checked against exactly the layers it names (invariant 3), and its objects stay in quarantine,
 *   invisible to every reader, until `install`;
 * - every process holds a lease on its repository while it runs, and dies with the request it serves.
 */
import type { Sequence } from '../kernel/append-list.ts';
import type { LayerId, ObjectId, RepositoryId } from '../kernel/ids.ts';
import type { LayerKey } from './layer-store.ts';

/** A committed layer as `RefsUpdated` names it. */
export interface Layer {
  readonly id: LayerId;
  readonly key: LayerKey;
  readonly sizeBytes: number;
  /** SHA-256 of the tar, hex. */
  readonly sha256: string;
  /** The pack's checksum, 40 hex: the layer holds `objects/pack/pack-<pack>.{pack,idx}`. */
  readonly pack: string;
}

/** The objects of a repository at one revision of its stream: exactly these layers, no others. */
export interface CommittedObjects {
  readonly repository: RepositoryId;
  /** Revision of the repository's stream; equal revisions mean equal layers. */
  readonly revision: number | 'none';
  /** Raised by every event that removes layers; while it stands, layers are only added at the end. */
  readonly shrinkEpoch: number;
  readonly layers: Sequence<Layer>;
}

export type ObjectType = 'commit' | 'tree' | 'blob' | 'tag';

export interface ObjectInfo {
  readonly id: ObjectId;
  readonly type: ObjectType;
  readonly sizeBytes: number;
}

/** A ref's new tip as it was found in the pack or in a committed layer. */
export interface Tip {
  readonly id: ObjectId;
  readonly type: ObjectType;
  /** For an annotated tag what it leads to in the end, else null. */
  readonly peeled: { readonly id: ObjectId; readonly type: ObjectType } | null;
}

export type PackRefusalCode =
  /** Truncated, wrong checksum, not a pack, cyclic deltas, a missing delta base. */
  | 'pack-broken'
  /** git fsck's verdict at our severities; the detail names the object and the rule. */
  | 'pack-fsck-failed'
  /** An object refers to one that is neither in the pack nor in a committed layer. */
  | 'pack-not-connected'
  | 'pack-too-large'
  | 'pack-too-many-objects'
  /** It took more memory, processor time or wall time than a push may. */
  | 'pack-too-costly'
  /** This node's disk is full. */
  | 'disk-full';

/** Why a pack was not taken: an expected outcome. `detail` is one line for the pusher. */
export interface PackRefusal {
  readonly refused: PackRefusalCode;
  readonly detail: string;
}

export interface ReceivePackOptions {
  readonly objects: CommittedObjects;
  /**
   * The raw pack. Read to its end also when it is refused, so that the client reads the answer, but no further than
   * `packSizeBytesMax`, where it is closed. One that fails ends the push with its error and leaves nothing behind.
   */
  readonly pack: AsyncIterable<Uint8Array>;
  readonly packSizeBytesMax: number;
  readonly objectCountMax: number;
  /** The client went away: kill the process, remove the quarantine. */
  readonly signal: AbortSignal;
  /** The pack was received whole and is being checked: keep-alives may start. */
  readonly onEndOfInput?: () => void;
}

/** Bytes of a layer's tar, ready for a layer store; `body` can be read any number of times. */
export interface LayerContent {
  readonly sizeBytes: number;
  readonly sha256: string;
  body(): AsyncIterable<Uint8Array>;
}

/**
 * A pack that passed every check, not yet part of the repository. The first of install and discard ends it; either
 * of them after that does nothing.
 */
export interface Quarantine {
  readonly pack: string;
  readonly objectCount: number;
  readonly receivedBytes: number;
  /**
   * Looks tips up in this pack, then in the committed layers it was checked against last; null where there is no
   * such object, or a tag of tags nested deeper than a thousand.
   */
  tips(ids: readonly ObjectId[]): Promise<readonly (Tip | null)[]>;
  /** Whether `ancestor` is reached from `descendant`, both in this pack or the committed layers. */
  isAncestor(ancestor: ObjectId, descendant: ObjectId): Promise<boolean>;
  /**
   * The tar of architecture.md (Storage): pack, idx, `updates`, `layer.json`, in that form byte for byte.
   * `updates` are this push's `<after> <ref> [<peeled>]` lines.
   */
  layer(
    updates: readonly string[],
    description: { readonly [key: string]: string | number | null },
  ): Promise<LayerContent>;
  /** Checks the pack again, `--strict`, against another set of layers: after the shrink epoch moved. */
  recheck(objects: CommittedObjects): Promise<PackRefusal | null>;
  /**
   * After the commit: links the pack into this node's cache as the given layer. Where that fails the failure is
   * logged, not thrown: the push is committed, and whoever reads next fetches the layer from the store.
   */
  install(layer: Layer): Promise<void>;
  discard(): Promise<void>;
}

/** A commit as its object says, headers decoded as UTF-8 with replacement. */
export interface Commit {
  readonly id: ObjectId;
  readonly tree: ObjectId;
  readonly parents: readonly ObjectId[];
  readonly author: Signature;
  readonly committer: Signature;
  readonly message: string;
}

export interface Signature {
  readonly name: string;
  readonly email: string;
  /** Seconds since the epoch, as git parses them: a broken date is 0. */
  readonly seconds: number;
  /** Minutes east of UTC. */
  readonly offsetMinutes: number;
}

/** An annotated tag as its object says. */
export interface TagObject {
  readonly id: ObjectId;
  /** Null for tags of before 2005, which name nobody. */
  readonly tagger: Signature | null;
  readonly message: string;
}

export interface TreeEntry {
  /** Raw bytes: names need not be UTF-8. */
  readonly name: Uint8Array;
  /** Octal, six digits: `100644`, `040000`, `120000`, `160000`. */
  readonly mode: string;
  readonly id: ObjectId;
}

/** The refs a fetch may see, as a repository view for upload-pack; equal keys mean equal refs. */
export interface RefsView {
  /** Names this set of refs within the repository, e.g. its stream's revision. */
  readonly key: string;
  /** The branch HEAD names, in full, born or not. */
  readonly head: string;
  /** In byte order of names, to be read any number of times; `peeled` is set for annotated tags only. */
  readonly refs: Iterable<{ readonly name: string; readonly id: ObjectId; readonly peeled: ObjectId | null }>;
}

export interface UploadPackOptions {
  readonly view: RefsView;
  readonly protocol: 0 | 1 | 2;
  /** The whole request body: its wants were authorised by the caller. */
  readonly request: AsyncIterable<Uint8Array>;
  /**
   * Names the answer within the repository: requests of one key are answered by the same bytes, so it may be kept
   * and given to the next. Null for one that is not worth it, or too large.
   */
  readonly answerKey: string | null;
  readonly signal: AbortSignal;
}

export interface WalkOptions {
  readonly include: readonly ObjectId[];
  readonly exclude: readonly ObjectId[];
  readonly skip?: number;
  readonly limit?: number;
}

/** Reads of one repository under a lease: close it, or the repository is never evicted. */
export interface ObjectReader {
  /** In-process: existence, type and size, without inflating more than a header. */
  lookup(ids: readonly ObjectId[]): Promise<readonly (ObjectInfo | null)[]>;
  tips(ids: readonly ObjectId[]): Promise<readonly (Tip | null)[]>;
  commit(id: ObjectId): Promise<Commit | null>;
  commits(ids: readonly ObjectId[]): Promise<readonly (Commit | null)[]>;
  tag(id: ObjectId): Promise<TagObject | null>;
  tree(id: ObjectId): Promise<readonly TreeEntry[] | null>;
  /** The bytes of a blob that is there, or a range of them cut to its end, in constant memory. */
  blob(id: ObjectId, range?: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
  /** Commits reached from `include` and not from `exclude`, in git's default order: newest date first. */
  walk(options: WalkOptions): AsyncIterable<ObjectId>;
  isAncestor(ancestor: ObjectId, descendant: ObjectId): Promise<boolean>;
  /** Which of the ids the given tips reach: commits, trees, blobs and tags alike. */
  reachable(ids: readonly ObjectId[], tips: readonly ObjectId[], tipsKey: string): Promise<ReadonlySet<ObjectId>>;
  /**
   * git upload-pack's stateless answer, body only. Ending the iteration early kills the process. It ends without an
   * error only when git did, or when the whole answer is an ERR packet, which is how git refuses a request.
   */
  uploadPack(options: UploadPackOptions): AsyncIterable<Uint8Array>;
  close(): void;
}

export type ObjectDatabaseErrorCode =
  /** A layer's bytes are not those its event names; the message names layer and key. */
  'layer-corrupt' | 'layer-missing' | 'object-database-unavailable';

export class ObjectDatabaseError extends Error {
  override readonly name = 'ObjectDatabaseError';
  readonly code: ObjectDatabaseErrorCode;
  constructor(code: ObjectDatabaseErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

export interface ObjectDatabase {
  /** Takes a push's pack into quarantine and checks it whole: index-pack --strict, limits, connectivity. */
  receive(options: ReceivePackOptions): Promise<Quarantine | PackRefusal>;
  /** Opens the repository for reading; missing layers are fetched and checked first. */
  open(objects: CommittedObjects): Promise<ObjectReader>;
  /** Forgets a repository's cached objects, e.g. after its deletion. Waits for no lease: eviction follows them. */
  drop(repository: RepositoryId): Promise<void>;
}
