/**
 * Why a pack is refused, and what a quarantine throws whose pack is refused after it was received.
 *
 * Invariants: a refusal is no outage: whoever uses a quarantine catches the error and answers with the refusal.
 */

export type PackRefusalCode =
  /** Truncated, wrong checksum, not a pack, cyclic deltas, a missing delta base. */
  | 'pack-broken'
  /** The pack broke a rule of git fsck, at the severities that Strata sets; the detail names the object and rule. */
  | 'pack-fsck-failed'
  /** An object refers to another that is neither in the pack nor in a committed layer. */
  | 'pack-not-connected'
  | 'pack-too-large'
  | 'pack-too-many-objects'
  /** A commit, tag or tree above the size limit of its type, or a commit with too many parents; the detail names it. */
  | 'pack-object-too-large'
  /** The check took more memory, processor time or wall time than a push may. */
  | 'pack-too-costly'
  /** The packs that arrive at this node, or of this account, together take all the room that there is for them. */
  | 'too-much-at-once'
  /** This node's disk is full. */
  | 'disk-full';

/** Why a pack was refused: an expected outcome. `detail` is one line for the person who pushes. */
export interface PackRefusal {
  readonly refused: PackRefusalCode;
  readonly detail: string;
}

export class PackRefusedError extends Error {
  override readonly name = 'PackRefusedError';
  readonly refusal: PackRefusal;
  constructor(refusal: PackRefusal) {
    super(refusal.detail);
    this.refusal = refusal;
  }
}
