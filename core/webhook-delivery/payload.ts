/**
 * The bodies that Strata sends to receivers (docs/interface.md, Webhooks).
 *
 * Invariants: the same facts always give the same bytes, with members in the order written here. A payload is
 * made once for an event and stored, and every attempt sends the stored bytes. Its size is bounded, however large the
 * commits are.
 */
import type { CommitRow, PersonRow } from '../git/commit-row.ts';
import { commitTime } from '../git/commit-time.ts';
import type { AccountId, EventId, ObjectId, RepositoryId, Timestamp, WebhookId } from '../kernel/ids.ts';
import { WEBHOOK_PAYLOAD_COMMITS_MAX } from '../kernel/limits.ts';
import { cutText } from '../kernel/text.ts';
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import type { StoredRefUpdate } from '../repository/events.ts';
import { type RefEventKind, shortRef } from './notifications.ts';

export interface PayloadOwner {
  readonly id: AccountId;
  readonly username: string;
}

export interface PayloadRepository {
  readonly id: RepositoryId;
  readonly name: string;
  /** The default branch after the push. */
  readonly defaultBranch: string;
  readonly owner: PayloadOwner;
  /** The URL of the website, without a slash at its end. */
  readonly webUrl: string;
}

export interface RefEvent {
  readonly eventId: EventId;
  readonly kind: RefEventKind;
  readonly update: StoredRefUpdate;
  /**
   * The commits that the ref reaches after the push and that no ref reached before, in the order of `git log`. The list
   * may stop after as many as the payload lists.
   */
  readonly newCommits: readonly CommitRow[];
  /** The commit that the ref peels to; null if it peels to no commit. */
  readonly headCommit: ObjectId | null;
  /** The message and the tagger of an annotated tag; null for lightweight tags and branches. */
  readonly annotation: { readonly message: string; readonly tagger: PersonRow | null } | null;
  readonly repository: PayloadRepository;
}

/**
 * Returns the JSON text of a push, a creation or a deletion, of at most `bytesMax` bytes. To fit, it halves the longest
 * texts repeatedly, and then leaves out the oldest commits. Throws a TypeError for a ref that is neither a branch nor a
 * tag, and a RangeError if even the names do not fit; 48 KiB are enough for the longest names.
 */
export function refEventPayload(event: RefEvent, bytesMax: number): string {
  let listed = { ...event, newCommits: event.newCommits.slice(0, WEBHOOK_PAYLOAD_COMMITS_MAX) };
  const lengths = textLengths(listed);
  for (
    let lengthMax = Math.max(TEXT_LENGTH_MIN, ...lengths);
    lengthMax >= TEXT_LENGTH_MIN;
    lengthMax = Math.floor(lengthMax / 2)
  ) {
    // A code unit takes at least one byte. A text that cannot fit is not built at all.
    if (lengths.reduce((sum, length) => sum + Math.min(length, lengthMax), 0) > bytesMax) continue;
    const text = jsonOf(withTextsCut(listed, lengthMax));
    if (fits(text, bytesMax)) return text;
  }
  listed = withTextsCut(listed, TEXT_LENGTH_MIN);
  while (listed.newCommits.length > 0) {
    listed = { ...listed, newCommits: listed.newCommits.slice(0, Math.floor(listed.newCommits.length / 2)) };
    const text = jsonOf(listed);
    if (fits(text, bytesMax)) return text;
  }
  throw new RangeError(`A payload of ${event.update.ref} does not fit into ${bytesMax} bytes`);
}

/** Texts are not cut below this length: a readable subject line is worth more than one more commit. */
export const TEXT_LENGTH_MIN = 64;

function jsonOf({ eventId, kind, update, repository, ...more }: RefEvent): string {
  const short = shortRef(update.ref);
  if (short === null) throw new TypeError(`No event is made of ${update.ref}`);
  const deleted = update.kind === 'delete';
  const { newCommits, headCommit, annotation } = more;
  return JSON.stringify({
    id: eventId,
    type: kind,
    ref: update.ref,
    ref_name: short.name,
    ref_type: short.type,
    before: update.before,
    after: update.after,
    created: update.kind === 'create',
    deleted,
    commits: deleted ? [] : listedCommits(newCommits, repository),
    head_commit: deleted || headCommit === null ? null : { id: headCommit },
    tag: short.type === 'branch' ? null : tagOf(short.name, update, annotation),
    repository: repositoryOf(repository),
  });
}

function fits(text: string, bytesMax: number): boolean {
  // A code unit takes at most three bytes of UTF-8, and at least one.
  if (text.length * 3 <= bytesMax) return true;
  return text.length <= bytesMax && new TextEncoder().encode(text).length <= bytesMax;
}

function textLengths({ newCommits, annotation }: RefEvent): readonly number[] {
  const people = newCommits.flatMap(({ author, committer }) => [author, committer]);
  const texts = [...newCommits.map(({ message }) => message), ...people.flatMap(({ name, email }) => [name, email])];
  if (annotation !== null)
    texts.push(annotation.message, annotation.tagger?.name ?? '', annotation.tagger?.email ?? '');
  return texts.map((text) => text.length);
}

function withTextsCut<Event extends RefEvent>(event: Event, lengthMax: number): Event {
  const { newCommits, annotation } = event;
  const personCut = ({ name, email }: PersonRow): PersonRow => ({
    name: cutText(name, lengthMax),
    email: cutText(email, lengthMax),
  });
  return {
    ...event,
    newCommits: newCommits.map((commit) => ({
      ...commit,
      message: cutText(commit.message, lengthMax),
      author: personCut(commit.author),
      committer: personCut(commit.committer),
    })),
    annotation:
      annotation === null
        ? null
        : {
            message: cutText(annotation.message, lengthMax),
            tagger: annotation.tagger === null ? null : personCut(annotation.tagger),
          },
  };
}

export interface Ping {
  readonly eventId: EventId;
  readonly createdAt: Timestamp;
  readonly webhook: {
    readonly id: WebhookId;
    readonly url: string;
    readonly events: readonly WebhookEventKind[];
    readonly active: boolean;
  };
  readonly owner: PayloadOwner;
}

export function pingPayload({ eventId, createdAt, webhook, owner }: Ping): string {
  const { id, url, events, active } = webhook;
  return JSON.stringify({
    id: eventId,
    type: 'ping',
    created_at: createdAt,
    webhook: { id, url, events, active },
    owner: { id: owner.id, username: owner.username },
  });
}

function repositoryOf({ id, name, defaultBranch, owner, webUrl }: PayloadRepository): object {
  const fullName = `${owner.username}/${name}`;
  return {
    id,
    name,
    full_name: fullName,
    default_branch: defaultBranch,
    html_url: `${webUrl}/${fullName}`,
    clone_url: `${webUrl}/r/${fullName}.git`,
    owner: { id: owner.id, username: owner.username },
  };
}

/** Returns the newest commits, as many as a payload lists, with the oldest of them first. */
function listedCommits(newCommits: readonly CommitRow[], repository: PayloadRepository): readonly object[] {
  const commitsUrl = `${repository.webUrl}/${repository.owner.username}/${repository.name}/commit`;
  return newCommits
    .slice(0, WEBHOOK_PAYLOAD_COMMITS_MAX)
    .toReversed()
    .map(({ id, message, committedAt, author, committer, parents }) => ({
      id,
      message,
      timestamp: commitTime(committedAt),
      url: `${commitsUrl}/${id}`,
      author: personOf(author),
      committer: personOf(committer),
      parents,
    }));
}

function personOf({ name, email }: PersonRow): object {
  return { name, email };
}

/** Returns the `tag` member. For a deleted tag it holds only the name. */
function tagOf(
  name: string,
  { kind, type, after, peeled }: StoredRefUpdate,
  annotation: RefEvent['annotation'],
): object {
  const tagger = annotation?.tagger ?? null;
  return {
    name,
    target: kind === 'delete' ? null : (peeled ?? after),
    annotated: type === 'tag',
    message: annotation?.message ?? null,
    tagger: tagger === null ? null : personOf(tagger),
  };
}
