/**
 * The bodies that receivers get (spec, Push payload shape; interface, Webhooks).
 *
 * Must stay true: the same facts give the same bytes for ever: members stand in the order written here. A payload is made
 * once for an event, stored, and sent as it is by every attempt. However large the commits are, it is within its bound.
 */
import type { WebhookEventKind } from '../kernel/webhook-events.ts';
import {
  type AccountId,
  type EventId,
  type ObjectId,
  plusMs,
  type RepositoryId,
  type Timestamp,
  timestamp,
  type WebhookId,
} from '../kernel/ids.ts';
import { WEBHOOK_PAYLOAD_COMMITS_MAX } from '../kernel/limits.ts';
import { cutText } from '../kernel/text.ts';
import type { CommitRow, PersonRow } from '../ports/read-models.ts';
import type { StoredRefUpdate } from '../repository/events.ts';
import { type RefEventKind, shortRef } from './notifications.ts';

export interface PayloadOwner {
  readonly id: AccountId;
  readonly username: string;
}

export interface PayloadRepository {
  readonly id: RepositoryId;
  readonly name: string;
  /** As after the push. */
  readonly defaultBranch: string;
  readonly owner: PayloadOwner;
  /** Of the website, without a slash at its end. */
  readonly webUrl: string;
}

export interface RefEvent {
  readonly eventId: EventId;
  readonly kind: RefEventKind;
  readonly update: StoredRefUpdate;
  /**
   * What the ref reaches after the push and no ref reached before, in the order of `git log`; more than the payload
   * lists may be left away.
   */
  readonly newCommits: readonly CommitRow[];
  /** The commit that the ref leads to; null where it leads to none. */
  readonly headCommit: ObjectId | null;
  /** What an annotated tag's object says; null for light tags and branches. */
  readonly annotation: { readonly message: string; readonly tagger: PersonRow | null } | null;
  readonly repository: PayloadRepository;
}

/**
 * The JSON text of a push, a creation or a deletion, of at most so many bytes: to fit, its longest texts are cut to half
 * again and again, and then the oldest commits are left away. A ref that is no branch and no tag makes none: TypeError;
 * RangeError where the longest names do not fit, for which 48 KiB are enough.
 */
export function refEventPayload(event: RefEvent, bytesMax: number): string {
  let listed = { ...event, newCommits: event.newCommits.slice(0, WEBHOOK_PAYLOAD_COMMITS_MAX) };
  const lengths = textLengths(listed);
  for (
    let lengthMax = Math.max(TEXT_LENGTH_MIN, ...lengths);
    lengthMax >= TEXT_LENGTH_MIN;
    lengthMax = Math.floor(lengthMax / 2)
  ) {
    // Each takes a byte for a code unit at least: what cannot fit is not written out.
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

/** Texts are cut no shorter: a subject line is more use than a commit more. */
const TEXT_LENGTH_MIN = 64;

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

/** The newest, oldest first. */
function listedCommits(newCommits: readonly CommitRow[], repository: PayloadRepository): readonly object[] {
  const commitsUrl = `${repository.webUrl}/${repository.owner.username}/${repository.name}/commit`;
  return newCommits
    .slice(0, WEBHOOK_PAYLOAD_COMMITS_MAX)
    .toReversed()
    .map(({ id, message, committedAt, author, committer, parents }) => ({
      id,
      message,
      timestamp: instantOf(committedAt),
      url: `${commitsUrl}/${id}`,
      author: personOf(author),
      committer: personOf(committer),
      parents,
    }));
}

function personOf({ name, email }: PersonRow): object {
  return { name, email };
}

/** Of a deleted tag only the name is known still. */
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

const EPOCH = timestamp('1970-01-01T00:00:00.000Z');
/** The last second of the year 9999: RFC 3339 has no later one, commits do. */
const SECONDS_MAX = 253_402_300_799;

function instantOf(seconds: number): Timestamp {
  return plusMs(EPOCH, Math.min(Math.max(seconds, 0), SECONDS_MAX) * 1_000);
}
