/**
 * Reads an entity from the log: continues from the entity in memory, else from a snapshot, else from its first event.
 *
 * Invariants: a start is used only if the log still holds the event that it ends with. So an answer holds no event
 * of a tail that the log lost, whether from memory or from a snapshot. A broken snapshot costs only time.
 */
import type { Decider, SnapshotCodec } from '../kernel/decider.ts';
import type { RecordedEvent, StreamName } from '../kernel/envelope.ts';
import { uuid } from '../kernel/ids.ts';
import { isJsonObject, type JsonValue } from '../kernel/json.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../kernel/limits.ts';
import type { EventStore } from '../ports/event-store.ts';
import type { Snapshot, Snapshots } from '../ports/snapshots.ts';
import { type AnyEvent, advance, type Entity, emptyEntity } from './entity.ts';

/** Completes an event before it is folded: a wide push stores parts of its `RefsUpdated` in other streams. */
export type Complete = (event: RecordedEvent) => Promise<RecordedEvent>;

export interface ReadingOptions {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly snapshots: Snapshots;
  readonly complete: Complete;
  /** Called when a snapshot could not be read or saved. */
  readonly onFault: (what: 'snapshot', cause: unknown) => void;
}

/**
 * Small, because each event may be nearly as large as an append may be, and many streams may be read at the same time.
 * Internal: the rest is read in further pages.
 */
const PAGE_EVENTS_MAX = 100;

/** Returns the entity as the log has it now. */
export async function readEntity<State, Event extends AnyEvent>(
  options: ReadingOptions,
  decider: Decider<State, Event>,
  stream: StreamName,
  known: Entity<State> | null,
): Promise<Entity<State>> {
  const continued = known === null ? null : await readOn(options, decider, known);
  if (continued !== null) return continued.entity;
  const start = await latestSnapshot(options, decider, stream);
  const fromSnapshot = start === null ? null : await readOn(options, decider, start);
  const read = fromSnapshot ?? (await readOn(options, decider, emptyEntity(decider, stream)));
  if (read === null) throw new TypeError(`${stream} could not be read from its first event`);
  // A wide push takes as long as a thousand small ones.
  if (read.events >= SNAPSHOT_INTERVAL_EVENTS || read.completed > 0) {
    saveSnapshot(options, snapshotOf(decider, read.entity));
  }
  return read.entity;
}

interface Read<State> {
  readonly entity: Entity<State>;
  /** The number of events that were folded, and of those among them that had parts in other streams. */
  readonly events: number;
  readonly completed: number;
}

/**
 * Folds the stream's events after the start. Returns null if the log does not hold the event that the start ends with.
 */
async function readOn<State, Event extends AnyEvent>(
  options: ReadingOptions,
  decider: Decider<State, Event>,
  start: Entity<State>,
): Promise<Read<State> | null> {
  let entity = start;
  let [events, completed] = [0, 0];
  // Reads the start's last event again, to compare its id.
  let from = start.revision === 'none' ? 0 : start.revision;
  let proven = start.revision === 'none';
  for (;;) {
    const page = await options.events.readStream(start.stream, {
      direction: 'forwards',
      from,
      limit: PAGE_EVENTS_MAX,
    });
    for (const event of page) {
      if (proven) {
        const whole = await options.complete(event);
        entity = advance(decider, entity, whole);
        events += 1;
        if (whole !== event) completed += 1;
      } else {
        if (event.id !== start.lastEventId) return null;
        proven = true;
        // A snapshot holds neither of these.
        entity = { ...entity, position: event.position, lastAt: event.occurredAt };
      }
    }
    if (!proven) return null;
    if (page.length < PAGE_EVENTS_MAX) return { entity, events, completed };
    from += page.length;
  }
}

/** Returns the entity of its newest snapshot, at or before `upTo` if set; null if there is none that can be read. */
export async function latestSnapshot<State, Event extends AnyEvent>(
  options: Pick<ReadingOptions, 'snapshots' | 'onFault'>,
  decider: Decider<State, Event>,
  stream: StreamName,
  upTo?: number,
): Promise<Entity<State> | null> {
  const codec = decider.snapshots;
  if (codec === null) return null;
  try {
    const snapshot = await options.snapshots.latest(stream, codec.version, upTo);
    return snapshot === null ? null : { ...emptyEntity(decider, stream), ...(await parseSnapshot(codec, snapshot)) };
  } catch (cause) {
    options.onFault('snapshot', cause);
    return null;
  }
}

/** Parses the stored form: a state, and the id of the event that it ends with. */
async function parseSnapshot<State>(
  codec: SnapshotCodec<State>,
  { state: stored, revision, parts = [] }: Snapshot,
): Promise<Pick<Entity<State>, 'state' | 'revision' | 'lastEventId'>> {
  const { state, last_event_id: id } = isJsonObject(stored) ? stored : {};
  if (state === undefined || !isJsonObject(state) || typeof id !== 'string') throw new TypeError('Not a snapshot');
  const read = codec.read(state);
  const whole = codec.parts === undefined ? read : await codec.parts.read(read, parts);
  return { state: whole, revision, lastEventId: uuid(id) };
}

/** Returns the snapshot of an entity; null if its state is not worth one. */
export function snapshotOf<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  { stream, state, revision, lastEventId }: Entity<State>,
): Snapshot | null {
  const codec = decider.snapshots;
  const written = codec?.write(state) ?? null;
  if (codec === null || written === null || revision === 'none' || lastEventId === null) return null;
  const stored: JsonValue = { last_event_id: lastEventId, state: written };
  // A state never changes, so its parts may be made later, when each is stored.
  const parts = codec.parts === undefined ? {} : { parts: codec.parts.write(state) };
  return { stream, revision, codeVersion: codec.version, state: stored, ...parts };
}

/** Saves a snapshot in the background: no caller waits for it. */
export function saveSnapshot(
  { snapshots, onFault }: Pick<ReadingOptions, 'snapshots' | 'onFault'>,
  snapshot: Snapshot | null,
): void {
  if (snapshot === null) return;
  snapshots.save(snapshot).catch((cause: unknown) => onFault('snapshot', cause));
}
