/**
 * Hides the events of streams that were pruned: until the server's scavenge they stay in its log of all streams.
 *
 * Invariants: positions pass over hidden events, as over the server's own. Only operational streams are looked up,
 * since no other is ever pruned, so reading the record costs nothing more.
 */
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import type { StreamName } from '../../core/kernel/envelope.ts';
import type { LogEntry } from './log-entries.ts';

const LOOK_UPS_AT_ONCE = 8;

/** Returns the entries without the events of streams that are gone. */
export type HideDeleted = (
  entries: readonly LogEntry[],
  isGone: (stream: StreamName) => Promise<boolean>,
) => Promise<readonly LogEntry[]>;

export function createHideDeleted(): HideDeleted {
  const limited = createConcurrencyLimit(LOOK_UPS_AT_ONCE);
  return async (entries, isGone) => {
    const streams = new Set<StreamName>();
    for (const { event } of entries) if (event?.isRecord === false) streams.add(event.stream);
    const gone = new Set<StreamName>();
    const lookUp = async (stream: StreamName): Promise<void> => {
      if (await isGone(stream)) gone.add(stream);
    };
    await Promise.all([...streams].map((stream) => limited(() => lookUp(stream))));
    if (gone.size === 0) return entries;
    return entries.map((one) => (one.event !== null && gone.has(one.event.stream) ? hidden(one) : one));
  };
}

function hidden({ position }: LogEntry): LogEntry {
  return { position, event: null, sizeBytes: 0 };
}
