/**
 * One answer for all who ask within a short time.
 *
 * Invariants: `make` runs once at a time, and never twice within `ageMsMax` of its end, however many ask. A failure is
 * kept as long as an answer, since what cannot be made costs as much to try.
 */

/** `monotonicMs` is a clock that only goes forward. */
export function createSnapshot<Value>(
  make: () => Promise<Value>,
  { ageMsMax, monotonicMs }: { readonly ageMsMax: number; readonly monotonicMs: () => number },
): () => Promise<Value> {
  let latest: { readonly value: Promise<Value>; madeAtMs: number | null } | null = null;
  return () => {
    if (latest !== null && (latest.madeAtMs === null || monotonicMs() - latest.madeAtMs < ageMsMax)) {
      return latest.value;
    }
    const made: NonNullable<typeof latest> = { value: make(), madeAtMs: null };
    const note = (): void => {
      made.madeAtMs = monotonicMs();
    };
    made.value.then(note, note);
    latest = made;
    return made.value;
  };
}
