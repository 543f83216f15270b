/** Commits in lists: every list cuts their texts with this function, so that all return the same, of limited size. */
import { COMMIT_LISTED_MESSAGE_LENGTH_MAX, COMMIT_LISTED_NAME_LENGTH_MAX } from '../../kernel/limits.ts';
import { startOfText } from '../../kernel/text.ts';
import type { Commit, Signature } from '../../ports/object-database.ts';

/** Returns the commit with its texts cut to the length that lists return. */
export function listedCommit(commit: Commit): Commit {
  return {
    ...commit,
    message: startOfText(commit.message, COMMIT_LISTED_MESSAGE_LENGTH_MAX),
    author: listedPerson(commit.author),
    committer: listedPerson(commit.committer),
  };
}

/** Returns the person with name and address cut to the length that lists return. */
export function listedPerson(person: Signature): Signature {
  const name = startOfText(person.name, COMMIT_LISTED_NAME_LENGTH_MAX);
  return { ...person, name, email: startOfText(person.email, COMMIT_LISTED_NAME_LENGTH_MAX) };
}
