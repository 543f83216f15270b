/**
 * The ref changes of repositories and the pushes that made them, read from a read model.
 *
 * Invariants: the changes of a repository are numbered from 0 in the order of its stream, without gaps, so that the
 * cost of a page does not grow with its offset.
 */
import type { Actor, LogPosition } from '../kernel/envelope.ts';
import type { EventId, ObjectId, PushId, RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { Page, PageOf } from '../kernel/page.ts';

/** The event that moved refs: a push, or a restoration. */
export interface PushRow {
  /** The revision of the event in the repository's stream. */
  readonly revision: number;
  readonly eventId: EventId;
  readonly at: Timestamp;
  readonly actor: Actor;
  /** The present or last name of the token, if a token pushed; null for other actors. */
  readonly tokenName: string | null;
}

/** How a change moved its ref. Each change of a restoration has the kind `restore`. */
export type ActivityKind = 'create' | 'fast-forward' | 'force-push' | 'delete' | 'restore';

export interface ActivityRow {
  readonly number: number;
  readonly push: PushRow;
  /** The full name. */
  readonly ref: string;
  /** All zeros for no object. */
  readonly before: ObjectId;
  readonly after: ObjectId;
  readonly kind: ActivityKind;
}

export interface PushTip {
  /** The number of the change. */
  readonly number: number;
  readonly revision: number;
  /** The object that the ref pointed to from then on; what a tag leads to in the end. */
  readonly target: ObjectId;
}

/** A push whose request had an idempotency key. */
export interface KeyedPush {
  readonly revision: number;
  readonly eventId: EventId;
  readonly at: Timestamp;
  /** SHA-256 of what was asked for, in hex. */
  readonly requestDigest: string;
}

export interface ActivityReader {
  /** Returns changes of a repository, newest first. */
  activity(repository: RepositoryId, page: Page): Promise<PageOf<ActivityRow>>;
  /** Returns the pushes of a repository at these revisions of its stream, in no particular order. */
  pushes(repository: RepositoryId, revisions: readonly number[]): Promise<readonly PushRow[]>;
  /** Returns what changes from this number on pointed refs to, oldest first; deletions are left out. */
  pushTips(repository: RepositoryId, from: number, limit: number): Promise<readonly PushTip[]>;
  /** Returns the repository's push of this id, at least up to the position; null if there is none with a key. */
  keyedPush(repository: RepositoryId, push: PushId, position: LogPosition): Promise<KeyedPush | null>;
}
