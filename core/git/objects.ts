/** Git's objects and what they hold, decoded: commits, annotated tags, entries of trees, and the tips of refs. */
import type { ObjectId } from '../kernel/ids.ts';

export type ObjectType = 'commit' | 'tree' | 'blob' | 'tag';

export interface ObjectInfo {
  readonly id: ObjectId;
  readonly type: ObjectType;
  readonly sizeBytes: number;
}

/** The object that a ref's new tip names, found in the pack or in a committed layer. */
export interface Tip {
  readonly id: ObjectId;
  readonly type: ObjectType;
  /** For an annotated tag the object that it peels to, else null. */
  readonly peeled: { readonly id: ObjectId; readonly type: ObjectType } | null;
}

/** `tag-too-deep` for a tag that does not peel within `TAG_CHAIN_LENGTH_MAX` tags; null if there is no such object. */
export type FoundTip = Tip | 'tag-too-deep' | null;

/** The contents of a commit object. Names and message are what git shows; bytes that are not UTF-8 are U+FFFD. */
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
  /** Seconds since the epoch, as git parses them: a malformed date is 0. */
  readonly seconds: number;
  /** Minutes east of UTC. */
  readonly offsetMinutes: number;
}

/** The contents of an annotated tag's object. */
export interface TagObject {
  readonly id: ObjectId;
  /** Null for tags from before 2005, which have no tagger. */
  readonly tagger: Signature | null;
  readonly message: string;
}

export interface TreeEntry {
  /** The name's raw bytes: it need not be UTF-8. */
  readonly name: Uint8Array;
  /** Octal, six digits: `100644`, `040000`, `120000`, `160000`. */
  readonly mode: string;
  readonly id: ObjectId;
}
