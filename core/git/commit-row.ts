/** A commit as lists and payloads show it. */
import type { ObjectId } from '../kernel/ids.ts';

export interface PersonRow {
  readonly name: string;
  readonly email: string;
}

export interface CommitRow {
  readonly id: ObjectId;
  readonly message: string;
  readonly author: PersonRow;
  readonly committer: PersonRow;
  /** Seconds since the epoch. */
  readonly authoredAt: number;
  readonly committedAt: number;
  readonly parents: readonly ObjectId[];
}
