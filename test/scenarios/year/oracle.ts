/**
 * What a repository must be, at every moment of its life: refs and HEAD in memory, objects in a work tree of the real
 * git, where nothing is ever removed.
 *
 * Invariants: a state holds from right after a change was acknowledged until right before the next one was asked for,
 * so no moment of a state lies within a change.
 */
import type { RepositoryId, Timestamp } from '../../../core/kernel/ids.ts';
import { git } from '../../support/strata.ts';

export interface OracleRef {
  readonly id: string;
  /** What an annotated tag names; null for a commit. */
  readonly peeled: string | null;
}

export type OracleRefs = ReadonlyMap<string, OracleRef>;

export interface OracleState {
  readonly refs: OracleRefs;
  readonly defaultBranch: string;
  /** False while the repository was deleted. */
  readonly isThere: boolean;
  readonly from: Timestamp;
  /** Not included; null: it holds still. */
  until: Timestamp | null;
}

export class OracleRepository {
  readonly id: RepositoryId;
  readonly name: string;
  readonly states: OracleState[] = [];
  refs = new Map<string, OracleRef>();
  defaultBranch = 'main';
  /** `gone`: it was purged, or its retention is over. */
  status: 'open' | 'deleted' | 'gone' = 'open';
  deletedAt: Timestamp | null = null;
  /** What no ref reached at that time may be gone. */
  purgedAt: Timestamp | null = null;
  readonly #now: () => Timestamp;

  constructor(id: RepositoryId, name: string, now: () => Timestamp) {
    this.id = id;
    this.name = name;
    this.#now = now;
    this.#begin();
  }

  /** Calls `change`, which asks the service and then changes this object. */
  async changed(change: () => Promise<void>): Promise<void> {
    const last = this.states.at(-1);
    if (last !== undefined) last.until ??= this.#now();
    await change();
    this.#begin();
  }

  #begin(): void {
    this.states.push({
      ...{ refs: new Map(this.refs), defaultBranch: this.defaultBranch, isThere: this.status === 'open' },
      ...{ from: this.#now(), until: null },
    });
  }

  set(ref: string, to: OracleRef | null): void {
    if (to === null) this.refs.delete(ref);
    else this.refs.set(ref, to);
  }

  /** Moments from here on must be shown whole. */
  keptSince(now: Timestamp, retentionMs: number): Timestamp {
    const since = new Date(Date.parse(now) - retentionMs).toISOString() as Timestamp;
    return this.purgedAt === null || this.purgedAt < since ? since : this.purgedAt;
  }
}

/** Returns what `git ls-remote --symref` prints of a repository with these refs. */
export function listingOf({ refs, defaultBranch }: Pick<OracleState, 'refs' | 'defaultBranch'>): string {
  const head = refs.get(`refs/heads/${defaultBranch}`);
  const lines = head === undefined ? [] : [`ref: refs/heads/${defaultBranch}\tHEAD`, `${head.id}\tHEAD`];
  for (const ref of [...refs.keys()].sort()) {
    const { id = '', peeled = null } = refs.get(ref) ?? {};
    lines.push(`${id}\t${ref}`, ...(peeled === null ? [] : [`${peeled}\t${ref}^{}`]));
  }
  return lines.map((line) => `${line}\n`).join('');
}

/** Returns every object that the refs reach, by the real git. */
export async function reachedBy(work: string, refs: OracleRefs): Promise<ReadonlySet<string>> {
  if (refs.size === 0) return new Set();
  const tips = [...refs.values()].map(({ id }) => `${id}\n`).join('');
  const listed = await git(work, ['rev-list', '--objects', '--no-object-names', '--stdin'], tips);
  return new Set(listed.trim().split('\n'));
}
