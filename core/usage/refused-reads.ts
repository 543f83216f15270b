/**
 * Counts of refused reads by token and reason, as events hold them.
 *
 * Invariants: every refused read that is added is in the counts. The pairs of token and reason are bounded; those of
 * further tokens count under their reason alone, and there are few reasons.
 */
import type { RefusedReads } from './events.ts';

export class RefusedReadSums {
  readonly #sums = new Map<string, RefusedReads>();
  readonly #namedMax: number;
  #named = 0;

  /** `namedMax`: how many pairs of token and reason are counted by themselves. */
  constructor(namedMax: number) {
    this.#namedMax = namedMax;
  }

  get size(): number {
    return this.#sums.size;
  }

  add({ token_id, reason, count }: RefusedReads): void {
    const own = `${token_id} ${reason}`;
    const isNamed = token_id !== null && (this.#sums.has(own) || this.#named < this.#namedMax);
    const key = isNamed ? own : `null ${reason}`;
    const before = this.#sums.get(key);
    if (isNamed && before === undefined) this.#named += 1;
    this.#sums.set(key, { token_id: isNamed ? token_id : null, reason, count: (before?.count ?? 0) + count });
  }

  list(): readonly RefusedReads[] {
    return [...this.#sums.values()];
  }
}
