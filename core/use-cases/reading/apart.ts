/**
 * Counts how far branches are apart: the commits that only one of two tips reaches.
 *
 * Invariants: a pair of commits never changes its counts, so they are kept. A count that takes too long is null.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import { APART_SPAN_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { Apart } from '../../ports/object-history.ts';

/** A cache, bounded in memory. */
export interface KnownApart {
  get(key: string): Apart | undefined;
  set(key: string, apart: Apart): void;
}

export interface ApartContext {
  readonly knownApart: KnownApart;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** Counts of one request that run at once. */
const AT_ONCE = 4;

/** Returns the counts in the order of the tips, each against `base`; null where the time for all of them was up. */
export async function countApart(
  { knownApart, clock }: ApartContext,
  reader: ObjectReader,
  tips: readonly ObjectId[],
  base: ObjectId,
  signal: AbortSignal,
): Promise<readonly (Apart | null)[]> {
  const found = new Map<ObjectId, Apart | null>([[base, { ahead: 0, behind: 0 }]]);
  for (const tip of tips) {
    const known = knownApart.get(`${tip} ${base}`);
    if (known !== undefined) found.set(tip, known);
  }
  const unknown = [...new Set(tips)].filter((tip) => !found.has(tip));
  const endMs = clock.monotonicMs() + APART_SPAN_MS;
  for (let at = 0; at < unknown.length; at += AT_ONCE) {
    const spanMs = endMs - clock.monotonicMs();
    if (spanMs <= 0) break;
    await allOf(
      unknown.slice(at, at + AT_ONCE).map(async (tip) => {
        const apart = await withinBounds(reader.history.apart(tip, base, { signal, spanMs }));
        found.set(tip, apart);
        if (apart !== null) knownApart.set(`${tip} ${base}`, apart);
      }),
    );
  }
  return tips.map((tip) => found.get(tip) ?? null);
}

/** As `Promise.all`, but waits until all have settled, so that none goes on for a request that has failed. */
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
