/**
 * Commits in lists: every list cuts their texts with these functions, so that all return the same, of limited size.
 *
 * Invariants: the read model stores `listedEntry`, and its query counts bytes and characters as `listedPage` does. So a
 * page is the same whether the read model or the objects answer.
 */
import {
  COMMIT_CROWDED_MESSAGE_LENGTH_MAX,
  COMMIT_LISTED_MESSAGE_LENGTH_MAX,
  COMMITS_PAGE_BYTES_MAX,
} from '../../kernel/limits.ts';
import { cutCharacters, startOfText } from '../../kernel/text.ts';
import type { CommitRow } from '../commit-row.ts';
import type { Commit, Signature } from '../objects.ts';
import { utf8Length } from '../utf8.ts';

/** UTF-16 code units of a person's name in lists of commits. */
export const COMMIT_LISTED_NAME_LENGTH_MAX = 1_024;

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
 * A commit of a list as JSON: id, message, author's name and e-mail, committer's name and e-mail, authored at,
 * committed at (Unix seconds), parents.
 */
export type ListedEntry = readonly [
  string,
  string,
  string,
  string,
  string,
  string,
  number,
  number,
  ...(readonly string[]),
];

export function listedEntry({
  id,
  message,
  author,
  committer,
  authoredAt,
  committedAt,
  parents,
}: CommitRow): ListedEntry {
  return [id, message, author.name, author.email, committer.name, committer.email, authoredAt, committedAt, ...parents];
}

/**
 * Returns a page of commits, with long messages cut further if the entries of the page take too many bytes: a hundred
 * commits may each have a message of 64 Ki characters. Cut messages end with `…`.
 */
export function listedPage(rows: readonly CommitRow[]): readonly CommitRow[] {
  const bytes = rows.reduce((sum, row) => sum + utf8Length(JSON.stringify(listedEntry(row))), 0);
  if (bytes <= COMMITS_PAGE_BYTES_MAX) return rows;
  return rows.map((row) => ({ ...row, message: cutCharacters(row.message, COMMIT_CROWDED_MESSAGE_LENGTH_MAX) }));
}

/** Returns the person with name and address cut to the length that lists return. */
export function listedPerson(person: Signature): Signature {
  const name = startOfText(person.name, COMMIT_LISTED_NAME_LENGTH_MAX);
  return { ...person, name, email: startOfText(person.email, COMMIT_LISTED_NAME_LENGTH_MAX) };
}
