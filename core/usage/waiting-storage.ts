/**
 * What waits to leave storage: the layers that purges, drops and compactions took out of the lists of repositories.
 *
 * Invariants: layers wait together that one event took out, under the id of the first. No event says that they are
 * gone: they are once the policy that removes them has passed the event, so the figure is its mark's and the log's.
 */
import { LOG_START, type RecordedEvent } from '../kernel/envelope.ts';
import { plusMs, type Timestamp } from '../kernel/ids.ts';
import { REPLACED_LAYERS_KEPT_MS_MIN } from '../kernel/limits.ts';
import type { EventStore } from '../ports/event-store.ts';
import type { PolicyMarks } from '../ports/policy-marks.ts';
import type { RemovedThrough } from '../ports/usage.ts';
import type { RepositoryEvent } from '../repository/events.ts';
import { provenMark } from '../runtime/read-mark.ts';

/** The names under which the policies that remove layers mark how far they have read the log. */
export const LAYER_EXPIRY = 'layer-expiry';
export const PURGE_REMOVAL = 'purged-layers';

export interface TakenOut {
  /** The first of the layers. */
  readonly layerId: string;
  readonly sizeBytes: number;
  /** Whether a purge took them out, not the service. */
  readonly byPurge: boolean;
}

export interface WaitingChange {
  /** Taken out by a compaction: they wait until an event lets them go. */
  readonly replaced: TakenOut | null;
  /** Taken out of a deleted repository, and let go by the same event. */
  readonly purged: TakenOut | null;
  /** Layers that the event lets go, of which the first of each compaction counts. */
  readonly letGo: readonly string[];
  /** Whether `PURGE_REMOVAL` removes them when it passes this event; else `LAYER_EXPIRY` does at the compaction. */
  readonly isPurge: boolean;
}

const NOTHING: WaitingChange = { replaced: null, purged: null, letGo: [], isPurge: false };

/** Returns what an event of a repository changes. */
export function waitingChangeOf({ actor }: Pick<RecordedEvent, 'actor'>, event: RepositoryEvent): WaitingChange {
  switch (event.type) {
    case 'LayersCompacted':
      // The service drops and merges by itself; only a purge rewrites a repository for somebody.
      return { ...NOTHING, replaced: takenOut(event.data.removed, actor.kind !== 'system') };
    case 'LayersExpired': {
      const { layers, reason } = event.data;
      const current = layers.filter((layer) => layer.current);
      const isPurge = reason !== 'retention' || current.length > 0;
      const letGo = layers.flatMap((layer) => (layer.current ? [] : [layer.id]));
      return { ...NOTHING, purged: reason === 'purge' ? takenOut(current, true) : null, letGo, isPurge };
    }
    case 'RefsUpdated':
    case 'DefaultBranchChanged':
    case 'RepositoryClosed':
    case 'RepositoryReopened':
      return NOTHING;
  }
}

function takenOut(
  layers: readonly { readonly id: string; readonly size_bytes: number }[],
  byPurge: boolean,
): TakenOut | null {
  const [first] = layers;
  if (first === undefined) return null;
  return { layerId: first.id, sizeBytes: layers.reduce((sum, { size_bytes }) => sum + size_bytes, 0), byPurge };
}

/** When the hour of purged layers is over, a worker removes them at its next sweep. */
const REMOVAL_WAIT_SECONDS = 60;

/** Returns how long layers that a purge let go stay in storage from now on. */
export function secondsUntilRemoved(letGoAt: Timestamp, now: Timestamp): number {
  const leavesAt = plusMs(letGoAt, REPLACED_LAYERS_KEPT_MS_MIN);
  return Math.max(Math.ceil((Date.parse(leavesAt) - Date.parse(now)) / 1_000), REMOVAL_WAIT_SECONDS);
}

/** Returns how far the bytes of layers have been removed from storage. */
export async function removedThrough(context: {
  readonly events: Pick<EventStore, 'readStream' | 'head'>;
  readonly marks: Pick<PolicyMarks, 'read'>;
}): Promise<RemovedThrough> {
  const through = async (policy: string) => {
    const mark = await context.marks.read(policy);
    return (mark === null ? null : await provenMark(context.events, mark))?.position ?? LOG_START;
  };
  const [replaced, purged] = await Promise.all([through(LAYER_EXPIRY), through(PURGE_REMOVAL)]);
  return { replaced, purged };
}
