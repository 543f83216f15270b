/**
 * The bodies that receivers get (spec, Push payload shape; interface, Webhooks).
 *
 * Must stay true: the same facts give the same bytes for ever: members stand in the order written here. A payload is made
 * once for an event, stored, and sent as it is by every attempt.
 */
import type { WebhookEventKind } from '../account/webhook-events.ts';
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

/** The JSON text of a push, a creation or a deletion. A ref that is no branch and no tag makes none: TypeError. */
export function refEventPayload({ eventId, kind, update, repository, ...more }: RefEvent): string {
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
