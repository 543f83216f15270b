/** The walks of the verification in memory (core/ports/verification-walks.ts), where no hold ends by time. */
import type { VerificationWalks, Walk, WalkProgress } from '../../../core/ports/verification-walks.ts';

export interface MemoryWalks extends VerificationWalks {
  readonly progress: Map<Walk, WalkProgress>;
  /** Who holds each walk. */
  readonly holders: Map<Walk, string>;
}

export function createMemoryWalks(): MemoryWalks {
  const progress = new Map<Walk, WalkProgress>();
  const holders = new Map<Walk, string>();
  const of = (walk: Walk): WalkProgress => progress.get(walk) ?? { begunAt: null, cursor: null, wholeSince: null };
  return {
    progress,
    holders,
    async take(walk, process) {
      const isHeld = (holders.get(walk) ?? process) === process;
      if (isHeld) holders.set(walk, process);
      return { isHeld, ...of(walk) };
    },
    async save(walk, process, next) {
      if (holders.get(walk) !== process) return false;
      progress.set(walk, next);
      return true;
    },
    async walked(walk, since) {
      progress.set(walk, { ...of(walk), wholeSince: since });
    },
  };
}
