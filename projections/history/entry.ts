/**
 * A commit as its row stores it: JSON that queries put into lists of commits without parsing it.
 *
 * Invariants: any commit that git accepts has an entry of bounded size that PostgreSQL can store.
 */
import type { CommitRow, PersonRow } from '../../core/git/commit-row.ts';
import type { OrderCommit } from '../../core/git/history/commit-queue.ts';
import { commitRow, type ListedEntry, listedEntry } from '../../core/git/history/listed-commit.ts';
import type { Commit } from '../../core/git/objects.ts';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { storableText } from '../runner/bulk.ts';

/** Returns the entry of a commit that `listedCommit` returned. */
export function commitEntry(commit: Commit): string {
  const { message, author, committer, ...row } = commitRow(commit);
  const storable = ({ name, email }: PersonRow) => ({ name: storableText(name), email: storableText(email) });
  return JSON.stringify(
    listedEntry({
      ...row,
      message: storableText(message),
      author: storable(author),
      committer: storable(committer),
    }),
  );
}

export function rowOfEntry(entry: ListedEntry): CommitRow {
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
  const [id, , , , , , , seconds, ...parents] = JSON.parse(text) as ListedEntry;
  return { id: objectId(id), seconds, parents: parents.map(objectId) };
}

export function orderCommit({ id, parents, committer }: Commit): OrderCommit {
  return { id, parents, seconds: committer.seconds };
}
