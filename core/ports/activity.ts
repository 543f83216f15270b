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

export type ChangedThing = 'branch' | 'tag' | 'ref';

/** How many refs of one kind a push changed in one way; `ref` is one that is neither a branch nor a tag. */
export interface CountedChanges {
  readonly kind: ActivityKind;
  readonly thing: ChangedThing;
  readonly count: number;
}

export interface PushActivity {
  readonly push: PushRow;
  /** In no particular order. */
  readonly counts: readonly CountedChanges[];
  /** The number of its first change, and how many it has: 1 or more. */
  readonly first: number;
  readonly count: number;
  /** Its last changes, newest first, at most as many as were asked for. */
  readonly changes: readonly ActivityRow[];
}

export interface WantedPushes {
  /** Only pushes before this revision of the stream; null: from the newest on. */
  readonly before: number | null;
  readonly limit: number;
  /** How many changes of each push are returned. */
  readonly changes: number;
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
  /**
   * Returns the pushes that changed refs, newest first. The cost grows neither with how many there are before nor with
   * what each of them changed.
   */
  pushActivity(repository: RepositoryId, wanted: WantedPushes): Promise<readonly PushActivity[]>;
  /** Returns `count` changes from the number `first` on, newest first; fewer where there are not as many. */
  changes(repository: RepositoryId, first: number, count: number): Promise<readonly ActivityRow[]>;
  /** Returns the pushes of a repository at these revisions of its stream, in no particular order. */
  pushes(repository: RepositoryId, revisions: readonly number[]): Promise<readonly PushRow[]>;
  /** Returns what changes from this number on pointed refs to, oldest first; deletions are left out. */
  pushTips(repository: RepositoryId, from: number, limit: number): Promise<readonly PushTip[]>;
  /** Returns the repository's push of this id, at least up to the position; null if there is none with a key. */
  keyedPush(repository: RepositoryId, push: PushId, position: LogPosition): Promise<KeyedPush | null>;
}
