/**
 * Commits, tags and people as payloads tell of them: a hostile history may have any of them as large as an object.
 *
 * Must stay true: what is made here is of bounded size and holds on to nothing that is not.
 */
import {
  WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX,
  WEBHOOK_PAYLOAD_NAME_LENGTH_MAX,
  WEBHOOK_PAYLOAD_PARENTS_MAX,
} from '../kernel/limits.ts';
import { cutText } from '../kernel/text.ts';
import type { Commit, Signature, TagObject } from '../ports/object-database.ts';
import type { CommitRow, PersonRow } from '../ports/read-models.ts';
import type { RefEvent } from './payload.ts';

export function toldCommit({ id, message, author, committer, parents }: Commit): CommitRow {
  return {
    id,
    message: cutText(message, WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX),
    author: toldPerson(author),
    committer: toldPerson(committer),
    authoredAt: author.seconds,
    committedAt: committer.seconds,
    parents: parents.slice(0, WEBHOOK_PAYLOAD_PARENTS_MAX),
  };
}

export function toldTag({ message, tagger }: TagObject): NonNullable<RefEvent['annotation']> {
  return {
    message: cutText(message, WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX),
    tagger: tagger === null ? null : toldPerson(tagger),
  };
}

function toldPerson({ name, email }: Signature): PersonRow {
  return {
    name: cutText(name, WEBHOOK_PAYLOAD_NAME_LENGTH_MAX),
    email: cutText(email, WEBHOOK_PAYLOAD_NAME_LENGTH_MAX),
  };
}
