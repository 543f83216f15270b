/**
 * Snapshots in memory, for tests.
 *
 * Invariants: a state is kept as text, so that a read never returns the object that was saved.
 */
import type { StreamName } from '../../../core/kernel/envelope.ts';
import { canonicalJson, type JsonValue } from '../../../core/kernel/json.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../../../core/kernel/limits.ts';
import { thinnedOut } from '../../../core/kernel/thinned.ts';
import type { Snapshots } from '../../../core/ports/snapshots.ts';

interface KeptSnapshot {
  readonly revision: number;
  readonly codeVersion: number;
  readonly stateText: string;
  /** Null for a snapshot without parts. */
  readonly partsText: string | null;
}

/** Makes a new, empty set of snapshots. */
export function createMemorySnapshots(): Snapshots {
  const streams = new Map<StreamName, KeptSnapshot[]>();
  return {
    latest: async (stream, codeVersion, upTo = Number.MAX_SAFE_INTEGER) => {
      const usable = (streams.get(stream) ?? []).filter((s) => s.codeVersion === codeVersion && s.revision <= upTo);
      const newest = usable.sort((a, b) => b.revision - a.revision)[0];
      if (newest === undefined) return null;
      const state = JSON.parse(newest.stateText) as JsonValue;
      const parts = newest.partsText === null ? {} : { parts: JSON.parse(newest.partsText) as JsonValue[] };
      return { stream, revision: newest.revision, codeVersion, state, ...parts };
    },
    save: async ({ stream, revision, codeVersion, state, parts }) => {
      const partsText = parts === undefined ? null : canonicalJson(await Array.fromAsync(parts));
      const kept = streams.get(stream) ?? [];
      const others = kept.filter((s) => s.revision !== revision || s.codeVersion !== codeVersion);
      const saved = [...others, { revision, codeVersion, stateText: canonicalJson(state), partsText }];
      const revisions = saved.filter((s) => s.codeVersion === codeVersion).map((s) => s.revision);
      const dropped = new Set(thinnedOut(revisions, SNAPSHOT_INTERVAL_EVENTS));
      streams.set(
        stream,
        saved.filter((s) => s.codeVersion !== codeVersion || !dropped.has(s.revision)),
      );
    },
  };
}
