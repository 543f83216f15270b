/**
 * Splits places of an account's log into what is read in one step.
 *
 * Invariants: what a batch holds in memory is bounded by the length of its entries, because each may be as large as
 * an append may be, and whoever owns the account decides how many are.
 */
import type { EntryPlace } from '../../ports/account-log.ts';

/** Yields the places in their order. A batch is longer than `lengthMax` only if it is one entry. */
export function* entryBatches<Place extends Pick<EntryPlace, 'length'>>(
  places: readonly Place[],
  { countMax, lengthMax }: { readonly countMax: number; readonly lengthMax: number },
): Generator<readonly Place[]> {
  let batch: Place[] = [];
  let total = 0;
  for (const place of places) {
    if (batch.length > 0 && (batch.length === countMax || total + place.length > lengthMax)) {
      yield batch;
      [batch, total] = [[], 0];
    }
    batch.push(place);
    total += place.length;
  }
  if (batch.length > 0) yield batch;
}
