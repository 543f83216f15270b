/** Puts the updates of a wide push back into its `RefsUpdated`, for the code that folds or projects the event. */
import { readEvent } from '../../kernel/decider.ts';
import type { Digest } from '../../kernel/digest.ts';
import { categoryOf, type RecordedEvent } from '../../kernel/envelope.ts';
import { canonicalJson } from '../../kernel/json.ts';
import type { EventStore } from '../../ports/event-store.ts';
import {
  refUpdatesEventKinds,
  repositoryEventKinds,
  type StoredRefUpdate,
  type UpdateParts,
} from '../../repository/events.ts';
import { otherParts, partsStream, startUpdatesDigest } from '../../repository/wide-updates.ts';

/** Returns the event with its updates in place. Throws if the parts in the log are not those that the event names. */
export async function withUpdatesInPlace(context: WideContext, event: RecordedEvent): Promise<RecordedEvent> {
  if (event.type !== 'RefsUpdated' || categoryOf(event.stream) !== 'repository') return event;
  const read = readEvent(repositoryEventKinds, event);
  if (read.type !== 'RefsUpdated') return event;
  const { parts } = read.data;
  if (parts === null || read.data.updates.length > 0) return event;
  return { ...event, data: { ...event.data, updates: await sharedUpdates(context, parts) } };
}

interface WideContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly digest: Digest;
}

type Updates = readonly StoredRefUpdate[];

/** What is being read of a log, and what was read of it last, for as long as somebody uses it. */
interface Shared {
  readonly underWay: Map<string, Promise<Updates>>;
  last: { readonly key: string; readonly updates: WeakRef<Updates> } | null;
}

const SHARED = new WeakMap<WideContext['events'], Shared>();

/**
 * Reads the updates of a wide push once for all who fold or project it at about the same time: they are some, and a
 * push may have 100,000 updates.
 */
async function sharedUpdates(context: WideContext, parts: UpdateParts): Promise<Updates> {
  const shared = SHARED.get(context.events) ?? { underWay: new Map<string, Promise<Updates>>(), last: null };
  SHARED.set(context.events, shared);
  const key = canonicalJson({ ...parts });
  const known = shared.last?.key === key ? shared.last.updates.deref() : undefined;
  if (known !== undefined) return known;
  const underWay = shared.underWay.get(key);
  if (underWay !== undefined) return underWay;
  const reading = readUpdates(context, parts).finally(() => shared.underWay.delete(key));
  shared.underWay.set(key, reading);
  const updates = await reading;
  shared.last = { key, updates: new WeakRef(updates) };
  return updates;
}

/** One part at a time, because each may be almost as large as an append may be, and takes some milliseconds. */
async function readUpdates({ events, digest }: WideContext, parts: UpdateParts): Promise<Updates> {
  const updates: StoredRefUpdate[] = [];
  const running = startUpdatesDigest(digest);
  const stream = partsStream(parts);
  for (let revision = 0; revision < parts.count; revision += 1) {
    const [part] = await events.readStream(stream, { direction: 'forwards', from: revision, limit: 1 });
    if (part === undefined) continue;
    const { updates: some } = readEvent(refUpdatesEventKinds, part).data;
    running.add(some);
    for (const update of some) updates.push(update);
  }
  if (updates.length !== parts.updates || running.hex() !== parts.sha256) throw otherParts(parts);
  return updates;
}
