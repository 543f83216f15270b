/**
 * A commit as its row stores it: JSON that queries put into lists of commits without parsing it.
 *
 * Invariants: any commit that git accepts has an entry of bounded size that PostgreSQL can store.
 */
import type { CommitRow } from '../../core/git/commit-row.ts';
import type { OrderCommit } from '../../core/git/history/commit-queue.ts';
import type { Commit } from '../../core/git/objects.ts';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { storableText } from '../runner/bulk.ts';

/**
 * Id, message, author's name and e-mail, committer's name and e-mail, authored at, committed at (Unix seconds),
 * parents.
 */
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

/** Returns the entry of a commit that `listedCommit` returned. */
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

export function rowOfEntry(entry: CommitEntry): CommitRow {
  const [id, message, authorName, authorEmail, committerName, committerEmail, authoredAt, committedAt, ...parents] =
    entry;
  return {
    id: id as ObjectId,
    message,
    author: { name: authorName, email: authorEmail },
    committer: { name: committerName, email: committerEmail },
    authoredAt,
    committedAt,
    parents: parents as ObjectId[],
  };
}

/** Returns the parts of an entry that decide the order of commits. */
export function orderCommitOf(text: string): OrderCommit {
  const [id, , , , , , , seconds, ...parents] = JSON.parse(text) as CommitEntry;
  return { id: objectId(id), seconds, parents: parents.map(objectId) };
}

export function orderCommit({ id, parents, committer }: Commit): OrderCommit {
  return { id, parents, seconds: committer.seconds };
}
