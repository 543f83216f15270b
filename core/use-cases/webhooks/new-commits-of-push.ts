/**
 * Finds the new commits of each ref of a push: those that the ref reaches and that no ref reached before the push.
 *
 * Invariants: the order is that of `git log`. The memory for new commits is bounded, whatever their size. A push
 * with more commits than that costs one walk for each ref instead.
 */
import type { CommitRow } from '../../git/commit-row.ts';
import { commitLength } from '../../git/history/commit-length.ts';
import { MIB } from '../../kernel/byte-units.ts';
import { type ObjectId, objectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import { WEBHOOK_PAYLOAD_COMMITS_MAX } from '../../kernel/limits.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import { readCommits } from '../../ports/read-commits.ts';
import type { StoredRefUpdate } from '../../repository/events.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { payloadCommit } from '../../webhook-delivery/payload-texts.ts';

/** New commits of one push in memory, which are assigned to its refs. */
export const WEBHOOK_PUSH_COMMITS_HELD_MAX = 10_000;
/**
 * The size of the new commits of one push in memory together, in UTF-16 code units of their texts; a parent counts 64.
 */
export const WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX = 32 * MIB;

export interface NewCommits {
  /** Returns the newest of the ref's new commits, newest first, at most as many as a payload lists. */
  of(update: StoredRefUpdate): Promise<readonly CommitRow[]>;
}

/** A commit in the form of payloads, with all its parents. */
interface HeldCommit {
  readonly row: CommitRow;
  readonly parents: readonly ObjectId[];
}

/**
 * `after` is the repository after the push, and `all` are all updates of the push. The caller may ask the result only
 * for the updates in `notified`.
 */
export async function newCommitsOf(
  reader: ObjectReader,
  after: OpenRepository,
  notified: readonly StoredRefUpdate[],
  all: readonly StoredRefUpdate[],
): Promise<NewCommits> {
  const exclude = tipsBefore(after, all);
  const known = new Set(exclude);
  const tips = notified.flatMap((update) => commitTip(update) ?? []).filter((tip) => !known.has(tip));
  const include = [...new Set(tips)];
  if (include.length === 0) return { of: async () => [] };
  // Tips may peel to trees and blobs, at which no walk can begin.
  const infos = await reader.lookup([...include, ...exclude]);
  // A purge may have come before the hour of the push's deliveries: what is new cannot be told any more.
  if (infos.includes(null)) return { of: async () => [] };
  const isCommit = (_: ObjectId, index: number): boolean => {
    const type = infos[index]?.type;
    return type === 'commit' || type === 'tag';
  };
  const starts = include.filter((id, index) => isCommit(id, index));
  const ends = exclude.filter((id, index) => isCommit(id, include.length + index));
  const wanted = new Set(starts);
  const held = await heldCommits(reader, starts, ends);
  // Refs that are pushed together usually share their newest commits.
  const recent = new RecentCommits(reader);
  return {
    of: async (update) => {
      const tip = commitTip(update);
      if (tip === null || !wanted.has(tip)) return [];
      if (held !== null) return reachedFrom(held, tip);
      const ids: ObjectId[] = [];
      const limit = WEBHOOK_PAYLOAD_COMMITS_MAX;
      for await (const id of reader.walk({ include: [tip], exclude: ends, limit })) ids.push(id);
      return recent.rows(ids);
    },
  };
}

/** Returns the tips that all refs had before the push. */
function tipsBefore({ refs }: OpenRepository, updates: readonly StoredRefUpdate[]): readonly ObjectId[] {
  const tips = new Set<ObjectId>();
  const moved = new Set(updates.map(({ ref }) => ref));
  for (const [name, ref] of refs.entries()) {
    if (!moved.has(name)) tips.add(ref.peeled ?? ref.id);
  }
  for (const { before } of updates) {
    if (before !== ZERO_OBJECT_ID) tips.add(objectId(before));
  }
  return [...tips];
}

/**
 * Returns the object that an update's ref peels to if it may be a commit; null for a deletion and for other objects.
 */
export function commitTip({ kind, type, after, peeled }: StoredRefUpdate): ObjectId | null {
  if (kind === 'delete') return null;
  if (type === 'commit') return objectId(after);
  return type === 'tag' && peeled !== null ? objectId(peeled) : null;
}

/** Reads all new commits, in the order of `git log`. Null if they would take too much memory. */
async function heldCommits(
  reader: ObjectReader,
  include: readonly ObjectId[],
  exclude: readonly ObjectId[],
): Promise<ReadonlyMap<ObjectId, HeldCommit> | null> {
  const ids: ObjectId[] = [];
  if (include.length === 0) return new Map();
  for await (const id of reader.walk({ include, exclude, limit: WEBHOOK_PUSH_COMMITS_HELD_MAX + 1 })) ids.push(id);
  if (ids.length > WEBHOOK_PUSH_COMMITS_HELD_MAX) return null;
  const held = new Map<ObjectId, HeldCommit>();
  let length = 0;
  for await (const commit of read(reader, ids)) {
    length += heldLength(commit);
    if (length > WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX) return null;
    held.set(commit.row.id, commit);
  }
  return held;
}

function heldLength({ row, parents }: HeldCommit): number {
  return commitLength({ ...row, parents });
}

/** A cache of the commits that were read last, bounded by the length of their texts. */
class RecentCommits {
  readonly #reader: ObjectReader;
  readonly #rows = new Map<ObjectId, CommitRow>();
  #length = 0;

  constructor(reader: ObjectReader) {
    this.#reader = reader;
  }

  async rows(ids: readonly ObjectId[]): Promise<readonly CommitRow[]> {
    const rows = new Map<ObjectId, CommitRow>();
    for (const id of ids) {
      const row = this.#rows.get(id);
      if (row !== undefined) rows.set(id, row);
    }
    const unread = ids.filter((id) => !rows.has(id));
    for await (const { row } of read(this.#reader, unread)) {
      rows.set(row.id, row);
      this.#keep(row);
    }
    return ids.flatMap((id) => rows.get(id) ?? []);
  }

  #keep(row: CommitRow): void {
    this.#length += commitLength(row);
    if (this.#length > WEBHOOK_PUSH_TEXT_HELD_LENGTH_MAX) {
      this.#rows.clear();
      this.#length = commitLength(row);
    }
    this.#rows.set(row.id, row);
  }
}

async function* read(reader: ObjectReader, ids: readonly ObjectId[]): AsyncGenerator<HeldCommit> {
  for await (const [, commit] of readCommits(reader, ids)) {
    if (commit !== null) yield { row: payloadCommit(commit), parents: commit.parents };
  }
}

function reachedFrom(held: ReadonlyMap<ObjectId, HeldCommit>, tip: ObjectId): readonly CommitRow[] {
  const reached = new Set<ObjectId>();
  const open = [tip];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const commit = held.get(id);
    if (commit === undefined || reached.has(id)) continue;
    reached.add(id);
    open.push(...commit.parents);
  }
  const newest: CommitRow[] = [];
  for (const { row } of held.values()) {
    if (newest.length === WEBHOOK_PAYLOAD_COMMITS_MAX) break;
    if (reached.has(row.id)) newest.push(row);
  }
  return newest;
}
