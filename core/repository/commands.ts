/** What can be asked of a repository. */
import type { RefName } from '../git/ref-name.ts';
import type { ObjectId } from '../kernel/ids.ts';
import type { Tip } from '../ports/object-database.ts';

/** One command of a push, with what was found out about its new tip. */
export interface RequestedUpdate {
  readonly ref: RefName;
  /** Null: the ref must not exist. */
  readonly before: ObjectId | null;
  /** Null: the ref is to be deleted. */
  readonly after: ObjectId | null;
  /** The object at `after`; null for a deletion, and when there is no such object. */
  readonly tip: Tip | null;
  /** Whether `after` descends from `before`; false where the question has no meaning. */
  readonly fastForward: boolean;
}

export interface UpdateRefs {
  /** No ref twice. */
  readonly updates: readonly RequestedUpdate[];
  /** All or none (gitprotocol-capabilities, atomic). */
  readonly atomic: boolean;
  /** The branch the repository's creator named: no push chooses another. */
  readonly initialDefaultBranch: string | null;
}

export type RepositoryCommand =
  | {
      readonly type: 'ChangeDefaultBranch';
      /** Short name, checked. */
      readonly branch: string;
      readonly initialDefaultBranch: string | null;
    }
  | { readonly type: 'CloseRepository' };

export type RefRefusalCode =
  | 'ref-moved'
  | 'ref-exists'
  | 'ref-missing'
  | 'ref-collides'
  | 'object-missing'
  | 'branch-needs-commit'
  | 'atomic-push-refused';
