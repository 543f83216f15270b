/**
 * Entities in memory: a bounded cache of aggregates, kept current by following the log.
 *
 * Must stay true (architecture, invariants 6 and 7):
 * - after `barrier()` resolved, every entity read here is at least as new as the log's head at some moment after
 *   the call;
 * - an entity never gives way to an older one of the same history; a gap in revisions drops it;
 * - memory is bounded whatever the log holds: only streams that were asked for are held, the least lately used go
 *   first, and the one in use stays even if it alone is too large.
 */
import type { Decider } from '../kernel/decider.ts';
import {
  categoryOf,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamName,
  streamName,
} from '../kernel/envelope.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../kernel/limits.ts';
import { type EventStore, EventStoreError } from '../ports/event-store.ts';
import type { Snapshot, Snapshots } from '../ports/snapshots.ts';
import { type AnyEvent, advance, type Entity, nextRevision } from './entity.ts';
import { LogFollower } from './log-follower.ts';
import { type Complete, readEntity, saveSnapshot, snapshotOf } from './read-entity.ts';

export interface EntitiesOptions {
  readonly events: EventStore;
  readonly snapshots: Snapshots;
  readonly complete: Complete;
  readonly cacheSizeBytesMax: number;
  /**
   * A snapshot that could not be read or saved, an event that could not be folded into an entity in memory, a
   * subscription that broke and starts anew, a log that lost its tail. None of them makes an answer wrong.
   */
  readonly onFault: (what: 'snapshot' | 'entity' | 'subscription' | 'log-went-back', cause: unknown) => void;
  /** Resolves when every call of this moment has come: requests read from the network in one go share one barrier. */
  readonly gather: () => Promise<void>;
}

export interface Entities {
  /** Resolves once this node has applied the log up to a head read after the call. Many calls share one read. */
  barrier(): Promise<LogPosition>;
  /** The entity as this node knows it: call `barrier` first where the answer must be linearizable. */
  get<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>>;
  /** The entity as the log has it now, whatever memory says: after a conflict. */
  reload<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>>;
  /** Folds events this node appended itself, without waiting for the subscription. */
  observe(stream: StreamName, firstRevision: number, position: LogPosition, events: readonly NewEvent[]): void;
  /** How far this node has followed the log. */
  appliedPosition(): LogPosition;
  residents(): { readonly count: number; readonly sizeBytes: number };
  start(): Promise<void>;
  close(): Promise<void>;
}

export function createEntities(options: EntitiesOptions): Entities {
  return new EntityCache(options);
}

/** An entity in memory, its type known to its own functions only. */
interface Resident {
  readonly entity: Entity<unknown>;
  readonly sizeBytes: number;
  /** Asked for again since it came to stand where it does. */
  asked: boolean;
  after(event: RecordedEvent): Resident;
  snapshot(): Snapshot | null;
}

/** What a resident takes beside its state. */
const RESIDENT_SIZE_BYTES = 1_000;

function makeResident<State, Event extends AnyEvent>(decider: Decider<State, Event>, entity: Entity<State>): Resident {
  return {
    entity,
    sizeBytes: RESIDENT_SIZE_BYTES + decider.sizeBytes(entity.state),
    asked: false,
    after: (event) => makeResident(decider, advance(decider, entity, event)),
    snapshot: () => snapshotOf(decider, entity),
  };
}

/** A stream's category names its decider, so what is held of the stream is of that decider's type. */
function parseHeld<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  held: Entity<unknown>,
): Entity<State> {
  if (categoryOf(held.stream) !== decider.category) throw new TypeError(`${held.stream} is no ${decider.category}`);
  return held as Entity<State>;
}

/** A stream being read. */
interface Reading {
  /** The newest revision that was delivered meanwhile; -1 for none. */
  heardOf: number;
  /** Null only while it is being set up. */
  answer: Promise<Entity<unknown>> | null;
}

class EntityCache implements Entities {
  readonly #options: EntitiesOptions;
  readonly #follower: LogFollower;
  /** The first goes next, unless it was asked for again: then it stands last (CLOCK, cheaper at each question than LRU). */
  readonly #residents = new Map<StreamName, Resident>();
  readonly #readings = new Map<StreamName, Set<Reading>>();
  #sizeBytes = 0;
  /** Counts how often all was forgotten: what was read before is of no use after. */
  #generation = 0;

  constructor(options: EntitiesOptions) {
    this.#options = options;
    this.#follower = new LogFollower({
      events: options.events,
      apply: (events) => this.#apply(events),
      forget: () => this.#forget(),
      onFault: options.onFault,
      gather: options.gather,
    });
  }

  async start(): Promise<void> {
    await this.#follower.barrier();
  }

  close(): Promise<void> {
    return this.#follower.close();
  }

  barrier(): Promise<LogPosition> {
    return this.#follower.barrier();
  }

  appliedPosition(): LogPosition {
    return this.#follower.applied;
  }

  residents(): { readonly count: number; readonly sizeBytes: number } {
    return { count: this.#residents.size, sizeBytes: this.#sizeBytes };
  }

  async get<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>> {
    const stream = streamName(decider.category, id);
    const resident = this.#residents.get(stream);
    if (resident !== undefined) {
      resident.asked = true;
      return parseHeld(decider, resident.entity);
    }
    // Whatever is delivered while a stream is read is in its answer, so a reading that began earlier serves too.
    const [running] = this.#readings.get(stream) ?? [];
    const answer = running?.answer ?? this.#read(decider, stream, null);
    return parseHeld(decider, await answer);
  }

  reload<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>> {
    const stream = streamName(decider.category, id);
    const known = this.#residents.get(stream)?.entity;
    return this.#read(decider, stream, known === undefined ? null : parseHeld(decider, known));
  }

  #read<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    stream: StreamName,
    known: Entity<State> | null,
  ): Promise<Entity<State>> {
    const reading: Reading = { heardOf: -1, answer: null };
    this.#readings.set(stream, (this.#readings.get(stream) ?? new Set()).add(reading));
    const answer = this.#readUntilCurrent(decider, stream, known, reading);
    reading.answer = answer;
    return answer;
  }

  async #readUntilCurrent<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    stream: StreamName,
    known: Entity<State> | null,
    reading: Reading,
  ): Promise<Entity<State>> {
    let start = known;
    try {
      for (;;) {
        const generation = this.#generation;
        const sought = reading.heardOf;
        const entity = await readEntity(this.#options, decider, stream, start);
        const next = nextRevision(entity.revision);
        if (generation !== this.#generation) {
          start = null;
          reading.heardOf = -1;
        } else if (sought >= next) {
          throw new EventStoreError('log-unavailable', `The log told of ${stream} ${sought} and does not show it`);
        } else if (reading.heardOf < next) {
          return this.#keep(decider, entity, start);
        } else {
          start = entity;
        }
      }
    } finally {
      // In the very step that keeps the entity: from here on it hears of events as a resident.
      const readings = this.#readings.get(stream);
      readings?.delete(reading);
      if (readings?.size === 0) this.#readings.delete(stream);
    }
  }

  /** Makes the entity resident unless a newer one is; `start` is what it was read on from. */
  #keep<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    entity: Entity<State>,
    start: Entity<State> | null,
  ): Entity<State> {
    const { stream } = entity;
    const resident = this.#residents.get(stream);
    if (resident !== undefined) {
      const held = parseHeld(decider, resident.entity);
      if (nextRevision(held.revision) >= nextRevision(entity.revision) && held !== start) return held;
    }
    // What has no events is not worth remembering: anybody can ask for any number of such names.
    if (entity.revision === 'none') this.#drop(stream);
    else this.#put(stream, makeResident(decider, entity));
    return entity;
  }

  #put(stream: StreamName, resident: Resident): void {
    const known = this.#residents.get(stream);
    this.#sizeBytes += resident.sizeBytes - (known?.sizeBytes ?? 0);
    // An event is no question: what nobody asks for goes, however often it changes.
    if (known !== undefined) resident.asked = known.asked;
    this.#residents.set(stream, resident);
    this.#makeRoom(known === undefined ? stream : null);
  }

  /** `newest` came just now, because it was asked for. */
  #makeRoom(newest: StreamName | null): void {
    for (const [stream, resident] of this.#residents) {
      if (this.#sizeBytes <= this.#options.cacheSizeBytesMax || this.#residents.size === 1) return;
      if (resident.asked || stream === newest) {
        resident.asked = false;
        this.#residents.delete(stream);
        this.#residents.set(stream, resident);
      } else {
        this.#drop(stream);
      }
    }
  }

  #drop(stream: StreamName): void {
    this.#sizeBytes -= this.#residents.get(stream)?.sizeBytes ?? 0;
    this.#residents.delete(stream);
  }

  #forget(): void {
    this.#generation += 1;
    this.#residents.clear();
    this.#sizeBytes = 0;
  }

  async #apply(events: readonly RecordedEvent[]): Promise<void> {
    const generation = this.#generation;
    for (const event of events) {
      const { stream, revision } = event;
      this.#tellReadings(stream, revision);
      const resident = this.#residents.get(stream);
      if (resident === undefined || revision < nextRevision(resident.entity.revision)) continue;
      try {
        const complete = await this.#options.complete(event);
        if (generation !== this.#generation) return;
        this.#fold(stream, [complete]);
      } catch (cause) {
        this.#spoil(stream, cause);
      }
    }
  }

  observe(stream: StreamName, firstRevision: number, position: LogPosition, events: readonly NewEvent[]): void {
    const recorded = events.map((event, index) => ({ ...event, stream, revision: firstRevision + index, position }));
    this.#tellReadings(stream, firstRevision + events.length - 1);
    try {
      this.#fold(stream, recorded);
    } catch (cause) {
      // They are committed: what is wrong with them is nothing that their writer could still change.
      this.#spoil(stream, cause);
    }
  }

  #tellReadings(stream: StreamName, revision: number): void {
    for (const reading of this.#readings.get(stream) ?? []) reading.heardOf = Math.max(reading.heardOf, revision);
  }

  #fold(stream: StreamName, events: readonly RecordedEvent[]): void {
    let resident = this.#residents.get(stream);
    if (resident === undefined) return;
    for (const event of events) {
      const next = nextRevision(resident.entity.revision);
      if (event.revision < next) continue;
      if (event.revision > next) {
        this.#drop(stream);
        return;
      }
      resident = resident.after(event);
      if ((event.revision + 1) % SNAPSHOT_INTERVAL_EVENTS === 0) saveSnapshot(this.#options, resident.snapshot());
    }
    this.#put(stream, resident);
  }

  /** Memory is a cache: the entity goes, and whoever asks for it next gets the reason from the log itself. */
  #spoil(stream: StreamName, cause: unknown): void {
    this.#drop(stream);
    this.#options.onFault('entity', cause);
  }
}
