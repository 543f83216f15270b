/** Commits in lists: every list cuts their texts with this function, so that all return the same, of limited size. */

import {
  COMMIT_CROWDED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_NAME_LENGTH_MAX,
  COMMITS_PAGE_BYTES_MAX,
} from '../../kernel/limits.ts';
import { cutText, startOfText } from '../../kernel/text.ts';
import type { CommitRow } from '../commit-row.ts';
import type { Commit, Signature } from '../objects.ts';
import { type CommitTexts, commitLength } from './commit-length.ts';

/** Returns the commit with its texts cut to the length that lists return. */
export function listedCommit(commit: Commit): Commit {
  return {
    ...commit,
    message: startOfText(commit.message, COMMIT_LISTED_MESSAGE_LENGTH_MAX),
    author: listedPerson(commit.author),
    committer: listedPerson(commit.committer),
  };
}

/** Returns the whole commit in the form of lists. */
export function commitRow({ id, message, author, committer, parents }: Commit): CommitRow {
  return {
    id,
    message,
    author: { name: author.name, email: author.email },
    committer: { name: committer.name, email: committer.email },
    authoredAt: author.seconds,
    committedAt: committer.seconds,
    parents,
  };
}

/** Returns the commit in the form of lists, with its texts cut to the length that lists return. */
export function listedRow(commit: Commit): CommitRow {
  return commitRow(listedCommit(commit));
}

/**
 * Returns a page of commits, with long messages cut further if the page would be too large: a hundred commits may each
 * have a message of 64 Ki characters. Cut messages end with `…`.
 */
export function listedPage<Row extends CommitTexts>(rows: readonly Row[]): readonly Row[] {
  const length = rows.reduce((sum, row) => sum + commitLength(row), 0);
  if (length <= COMMITS_PAGE_BYTES_MAX) return rows;
  return rows.map((row) => ({ ...row, message: cutText(row.message, COMMIT_CROWDED_MESSAGE_LENGTH_MAX) }));
}

/** Returns the person with name and address cut to the length that lists return. */
export function listedPerson(person: Signature): Signature {
  const name = startOfText(person.name, COMMIT_LISTED_NAME_LENGTH_MAX);
  return { ...person, name, email: startOfText(person.email, COMMIT_LISTED_NAME_LENGTH_MAX) };
}
