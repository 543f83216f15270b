/**
 * A quarantine whose pack is still being checked (pack-bounds.ts), while the push goes on.
 *
 * Invariants: until the pack has passed, nothing but its tips is read, what they reach is counted within the bounds of
 * a push, nothing else is made of it, and nobody gets the end of its layer; so no store takes a layer of a pack that
 * fails.
 */
import { PackRefusedError } from '../../../core/git/pack-refusal.ts';
import type { LayerContent, Quarantine } from '../../../core/ports/object-database.ts';
import type { CacheLease, LayerCache } from '../cache/layer-cache.ts';
import type { BoundsCheck } from './pack-bounds.ts';
import { checking } from './quarantine.ts';

export function unfinishedQuarantine(
  quarantine: Quarantine,
  bounds: BoundsCheck,
  { cache, lease }: { readonly cache: LayerCache; readonly lease: CacheLease },
): Quarantine {
  const passed = async (): Promise<void> => {
    const refusal = await checking(cache, lease, () => bounds.refusal);
    if (refusal !== null) throw new PackRefusedError(refusal);
  };
  return {
    get pack() {
      return quarantine.pack;
    },
    get objectCount() {
      return quarantine.objectCount;
    },
    receivedBytes: quarantine.receivedBytes,
    tips: quarantine.tips,
    commitSeconds: (ids) => passed().then(() => quarantine.commitSeconds(ids)),
    compareMoves: async (moves, signal) => {
      if (moves.length > 0) await passed();
      return quarantine.compareMoves(moves, signal);
    },
    diff: async function* (from, to, bounded) {
      await passed();
      yield* quarantine.diff(from, to, bounded);
    },
    layer: async (updates, description) => endingAfter(passed, await quarantine.layer(updates, description)),
    leavesOver: (tips, known, signal) =>
      quarantine.leavesOver(tips, known, signal).catch(async (error: unknown) => {
        // What ends a count may be what the check refuses, and the check says why.
        await passed();
        throw error;
      }),
    keepReached: (tips, known, signal) => passed().then(() => quarantine.keepReached(tips, known, signal)),
    recheck: (objects) => passed().then(() => quarantine.recheck(objects)),
    install: quarantine.install,
    discard: async () => {
      await bounds.end();
      await quarantine.discard();
    },
  };
}

/** The same content, whose last chunk waits. */
function endingAfter(passed: () => Promise<void>, content: LayerContent): LayerContent {
  return {
    ...content,
    body: async function* () {
      let last: Uint8Array | null = null;
      for await (const chunk of content.body()) {
        if (last !== null) yield last;
        last = chunk;
      }
      await passed();
      if (last !== null) yield last;
    },
  };
}
