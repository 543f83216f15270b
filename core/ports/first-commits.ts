/** Makes the first commit of a repository, for people who begin without a clone. */
import type { ObjectId, Timestamp } from '../kernel/ids.ts';

export interface WantedFirstCommit {
  /** The file at the root, which is the whole tree. */
  readonly fileName: string;
  readonly text: string;
  readonly message: string;
  readonly author: { readonly name: string; readonly email: string };
  readonly at: Timestamp;
}

export interface FirstCommit {
  readonly commit: ObjectId;
  /** The commit, its tree and its blob, as a client pushes them. */
  readonly pack: Uint8Array;
}

export interface FirstCommits {
  /** Depends on nothing but its argument: the same wanted commit has the same id and pack. */
  make(wanted: WantedFirstCommit): Promise<FirstCommit>;
}
