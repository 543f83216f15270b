/**
 * Commits, tags and people in the form that payloads show. In a hostile history each may be as large as a Git object.
 *
 * Invariants: the results are of bounded size and keep no reference to a larger text in memory.
 */
import type { CommitRow, PersonRow } from '../git/commit-row.ts';
import type { Commit, Signature, TagObject } from '../git/objects.ts';
import { KIB } from '../kernel/byte-units.ts';
import { cutText } from '../kernel/text.ts';
import type { RefEvent } from './payload.ts';

/**
 * UTF-16 code units of a commit's or tag's message, and of a person's name or address, in a payload. Cut texts end with
 * `…`.
 */
export const WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX = 64 * KIB;
export const WEBHOOK_PAYLOAD_NAME_LENGTH_MAX = 256;
/** Parents of one commit that a payload lists: the first ones. */
export const WEBHOOK_PAYLOAD_PARENTS_MAX = 100;

export function payloadCommit({ id, message, author, committer, parents }: Commit): CommitRow {
  return {
    id,
    message: cutText(message, WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX),
    author: payloadPerson(author),
    committer: payloadPerson(committer),
    authoredAt: author.seconds,
    committedAt: committer.seconds,
    parents: parents.slice(0, WEBHOOK_PAYLOAD_PARENTS_MAX),
  };
}

export function payloadTag({ message, tagger }: TagObject): NonNullable<RefEvent['annotation']> {
  return {
    message: cutText(message, WEBHOOK_PAYLOAD_MESSAGE_LENGTH_MAX),
    tagger: tagger === null ? null : payloadPerson(tagger),
  };
}

function payloadPerson({ name, email }: Signature): PersonRow {
  return {
    name: cutText(name, WEBHOOK_PAYLOAD_NAME_LENGTH_MAX),
    email: cutText(email, WEBHOOK_PAYLOAD_NAME_LENGTH_MAX),
  };
}
