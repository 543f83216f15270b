/**
 * Counts the commits by which a branch is ahead of another one and behind it.
 *
 * Invariants: a pair of commits never changes its counts, so they are kept. A count that takes too long is null.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { AheadBehind } from '../../ports/object-history.ts';

/** How long git may count how far two commits are apart, and how long a page of branches counts in all. */
export const APART_SPAN_MS = 2_000;

/** A cache, bounded in memory. */
export interface KnownAheadBehind {
  get(key: string): AheadBehind | undefined;
  set(key: string, aheadBehind: AheadBehind): void;
}

export interface AheadBehindContext {
  readonly knownAheadBehind: KnownAheadBehind;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** How many counts of one request run concurrently. */
const COUNTED_AT_ONCE = 4;

/** Returns the counts in the order of the tips, each against `base`; null where the time for all of them was up. */
export async function countAheadBehind(
  { knownAheadBehind, clock }: AheadBehindContext,
  reader: ObjectReader,
  tips: readonly ObjectId[],
  base: ObjectId,
  signal: AbortSignal,
): Promise<readonly (AheadBehind | null)[]> {
  const found = new Map<ObjectId, AheadBehind | null>([[base, { ahead: 0, behind: 0 }]]);
  for (const tip of tips) {
    const known = knownAheadBehind.get(`${tip} ${base}`);
    if (known !== undefined) found.set(tip, known);
  }
  const unknown = [...new Set(tips)].filter((tip) => !found.has(tip));
  const endMs = clock.monotonicMs() + APART_SPAN_MS;
  for (let at = 0; at < unknown.length; at += COUNTED_AT_ONCE) {
    const spanMs = endMs - clock.monotonicMs();
    if (spanMs <= 0) break;
    await allOf(
      unknown.slice(at, at + COUNTED_AT_ONCE).map(async (tip) => {
        const aheadBehind = await withinBounds(reader.history.aheadBehind(tip, base, { signal, spanMs }));
        found.set(tip, aheadBehind);
        if (aheadBehind !== null) knownAheadBehind.set(`${tip} ${base}`, aheadBehind);
      }),
    );
  }
  return tips.map((tip) => found.get(tip) ?? null);
}

/** Like `Promise.all`, but waits until all have settled, so that none goes on for a request that has failed. */
export async function allOf<const Works extends readonly Promise<unknown>[]>(works: Works) {
  await Promise.allSettled(works);
  return Promise.all(works);
}

/** Resolves null if git reached a limit of time. */
export async function withinBounds<Result>(work: Promise<Result>): Promise<Result | null> {
  try {
    return await work;
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return null;
  }
}
