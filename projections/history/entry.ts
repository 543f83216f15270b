/**
 * A commit as its row holds it: the JSON that a list of commits is put together from without looking inside.
 *
 * Must stay true: any commit that git takes has an entry of bounded size that PostgreSQL can store.
 */
import type { OrderCommit } from '../../core/git/history/commit-queue.ts';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { COMMIT_LISTED_MESSAGE_LENGTH_MAX, COMMIT_LISTED_NAME_LENGTH_MAX } from '../../core/kernel/limits.ts';
import type { Commit, Signature } from '../../core/ports/object-database.ts';
import type { CommitRow } from '../../core/ports/read-models.ts';
import { startOfText } from '../../core/kernel/text.ts';
import { storableText } from '../runner/bulk.ts';

/** Id, message, author's name and e-mail, committer's, authored at, committed at, parents. */
export type CommitEntry = readonly [
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

/** As much of a commit as its row holds, however long its texts are. */
export function listedCommit(commit: Commit): Commit {
  return {
    ...commit,
    message: startOfText(commit.message, COMMIT_LISTED_MESSAGE_LENGTH_MAX),
    author: listedPerson(commit.author),
    committer: listedPerson(commit.committer),
  };
}

function listedPerson(person: Signature): Signature {
  const name = startOfText(person.name, COMMIT_LISTED_NAME_LENGTH_MAX);
  return { ...person, name, email: startOfText(person.email, COMMIT_LISTED_NAME_LENGTH_MAX) };
}

/** Of a `listedCommit`. */
export function commitEntry({ id, message, author, committer, parents }: Commit): string {
  const entry: CommitEntry = [
    id,
    storableText(message),
    storableText(author.name),
    storableText(author.email),
    storableText(committer.name),
    storableText(committer.email),
    author.seconds,
    committer.seconds,
    ...parents,
  ];
  return JSON.stringify(entry);
}

export function commitRow(entry: CommitEntry): CommitRow {
  const [id, message, authorName, authorEmail, committerName, committerEmail, authoredAt, committedAt, ...parents] =
    entry;
  return {
    ...{ id: id as ObjectId, message },
    author: { name: authorName, email: authorEmail },
    committer: { name: committerName, email: committerEmail },
    ...{ authoredAt, committedAt, parents: parents as ObjectId[] },
  };
}

/** What of an entry decides the order of commits. */
export function orderCommitOf(text: string): OrderCommit {
  const [id, , , , , , , seconds, ...parents] = JSON.parse(text) as CommitEntry;
  return { id: objectId(id), seconds, parents: parents.map(objectId) };
}

export function orderCommit({ id, parents, committer }: Commit): OrderCommit {
  return { id, parents, seconds: committer.seconds };
}
