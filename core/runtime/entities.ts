/**
 * Entities in memory: a bounded cache of aggregates that follows the log.
 *
 * Invariants (docs/architecture.md, invariants 6 and 7):
 * - after `barrier()` has resolved, every entity read here is at least as new as the log's head at some moment after
 *   the call;
 * - an older entity never replaces a newer one of the same history; a gap in the revisions drops the entity;
 * - memory is bounded whatever the log holds: the cache holds only streams that a caller requested. The CLOCK algorithm
 *   chooses which to drop. One entity that would take most of the bound is held beside it, the last that was requested:
 *   each request loads others too, such as its token, and none of them may evict it while it is in use.
 */
import type { Decider } from '../kernel/decider.ts';
import {
  categoryOf,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamEvent,
  type StreamName,
  streamName,
} from '../kernel/envelope.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../kernel/limits.ts';
import type { MaybePromise } from '../kernel/maybe-promise.ts';
import { type CacheLooks, type CacheSize, showCache } from '../kernel/shown-caches.ts';
import { wholeAppends } from '../kernel/whole-appends.ts';
import { type EventStore, EventStoreError } from '../ports/event-store.ts';
import type { Snapshot, Snapshots } from '../ports/snapshots.ts';
import { type AnyEvent, advance, type Entity, nextRevision } from './entity.ts';
import { LogFollower } from './log-follower.ts';
import { type Complete, readEntity, saveSnapshot, snapshotOf } from './read-entity.ts';
import type { ReadLeases } from './read-leases.ts';

export interface EntitiesOptions {
  readonly events: EventStore;
  /** Without them each barrier reads the log's head. */
  readonly leases?: ReadLeases;
  readonly snapshots: Snapshots;
  readonly complete: Complete;
  readonly cacheSizeBytesMax: number;
  /**
   * Called for a snapshot that could not be read or saved, an event that could not be folded into an entity in memory,
   * a subscription that failed and starts again, and a log that lost its tail. None of them makes an answer wrong.
   */
  readonly onFault: (what: 'snapshot' | 'entity' | 'subscription' | 'log-went-back', cause: unknown) => void;
  /**
   * Called when all entities are forgotten, since this node may have applied events that the log has lost: what else is
   * kept of the log must be compared with it.
   */
  readonly onForget?: () => void;
  /** Delays a read of the head until all calls made at this moment have arrived, so that one read serves them all. */
  readonly gather: () => Promise<void>;
}

export interface Entities {
  /**
   * Resolves when this node has applied the log up to a head read after the call, or answers from memory under a read
   * lease. Concurrent calls share one read.
   */
  barrier(): Promise<LogPosition>;
  /** What `barrier` would resolve to, if this node knows it without waiting; else null. */
  known(): LogPosition | null;
  /**
   * Returns the entity as this node knows it, without a wait if it is in memory. Call `barrier` first if the read must
   * be linearizable.
   */
  get<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): MaybePromise<Entity<State>>;
  /** Reads the entity from the log, not from memory alone. For use after a conflict. */
  reload<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>>;
  /** Folds events that this node appended, without waiting for the subscription. */
  observe(stream: StreamName, firstRevision: number, position: LogPosition, events: readonly NewEvent[]): void;
  /** Returns the log position that this node has applied. */
  appliedPosition(): LogPosition;
  residents(): { readonly count: number; readonly sizeBytes: number };
  start(): Promise<void>;
  close(): Promise<void>;
}

export function createEntities(options: EntitiesOptions): Entities {
  return new EntityCache(options);
}

/** An entity in memory. Only its own functions know the type of its state. */
interface Resident {
  readonly entity: Entity<unknown>;
  readonly sizeBytes: number;
  /** CLOCK's reference bit: true if a caller requested it since it got its present place in the order. */
  isReferenced: boolean;
  after(event: StreamEvent): Resident;
  snapshot(): Snapshot | null;
}

/** An entity that is larger than this share of the bound is held beside it. */
const LARGE_SHARE = 0.75;

/** The memory that a resident takes in addition to its state, roughly. */
const RESIDENT_SIZE_BYTES = 1_000;

function makeResident<State, Event extends AnyEvent>(decider: Decider<State, Event>, entity: Entity<State>): Resident {
  return {
    entity,
    sizeBytes: RESIDENT_SIZE_BYTES + decider.sizeBytes(entity.state),
    isReferenced: false,
    after: (event) => makeResident(decider, advance(decider, entity, event)),
    snapshot: () => snapshotOf(decider, entity),
  };
}

/** Types a cached entity. Safe because a stream's category determines its decider, and so the type of its state. */
function parseCached<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  cached: Entity<unknown>,
): Entity<State> {
  if (categoryOf(cached.stream) !== decider.category) throw new TypeError(`${cached.stream} is no ${decider.category}`);
  return cached as Entity<State>;
}

/** A stream that is being read from the log. */
interface Reading {
  /** The newest revision of the stream that was delivered while it is read; -1 for none. */
  newestDelivered: number;
  /** Null only until `#read` has set it. */
  answer: Promise<Entity<unknown>> | null;
}

class EntityCache implements Entities {
  readonly #options: EntitiesOptions;
  readonly #follower: LogFollower;
  /**
   * The first is dropped next, unless it is referenced: then it moves to the end (CLOCK: cheaper at each `get` than
   * LRU).
   */
  readonly #residents = new Map<StreamName, Resident>();
  #large: Resident | null = null;
  readonly #readings = new Map<StreamName, Set<Reading>>();
  readonly #looks: CacheLooks;
  #sizeBytes = 0;
  /** Counts how often the cache was cleared: what was read from the log before a clearing must not be kept after it. */
  #generation = 0;

  constructor(options: EntitiesOptions) {
    this.#options = options;
    this.#looks = showCache('entities', 'memory', this, EntityCache.#sizeOf);
    this.#follower = new LogFollower({
      events: options.events,
      ...(options.leases === undefined ? {} : { leases: options.leases }),
      apply: (events) => this.#apply(events),
      forget: () => this.#forget(),
      onFault: options.onFault,
      gather: options.gather,
    });
  }

  static #sizeOf(its: EntityCache): CacheSize {
    return { taken: its.residents().sizeBytes, max: its.#options.cacheSizeBytesMax };
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

  known(): LogPosition | null {
    return this.#follower.known();
  }

  appliedPosition(): LogPosition {
    return this.#follower.applied;
  }

  residents(): { readonly count: number; readonly sizeBytes: number } {
    const large = this.#large;
    return {
      count: this.#residents.size + (large === null ? 0 : 1),
      sizeBytes: this.#sizeBytes + (large?.sizeBytes ?? 0),
    };
  }

  get<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): MaybePromise<Entity<State>> {
    const stream = streamName(decider.category, id);
    const resident = this.#resident(stream);
    if (resident !== undefined) {
      this.#looks.hits += 1;
      resident.isReferenced = true;
      return parseCached(decider, resident.entity);
    }
    this.#looks.misses += 1;
    // A reading's result holds every event delivered while it ran, so this call can share one that began earlier.
    const [running] = this.#readings.get(stream) ?? [];
    const answer = running?.answer ?? this.#read(decider, stream, null);
    return answer.then((entity) => parseCached(decider, entity));
  }

  reload<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>> {
    const stream = streamName(decider.category, id);
    const known = this.#resident(stream)?.entity;
    return this.#read(decider, stream, known === undefined ? null : parseCached(decider, known));
  }

  #read<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    stream: StreamName,
    known: Entity<State> | null,
  ): Promise<Entity<State>> {
    const reading: Reading = { newestDelivered: -1, answer: null };
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
        const deliveredBefore = reading.newestDelivered;
        const entity = await readEntity(this.#options, decider, stream, start);
        const next = nextRevision(entity.revision);
        if (generation !== this.#generation) {
          start = null;
          reading.newestDelivered = -1;
        } else if (deliveredBefore >= next) {
          throw new EventStoreError(
            'log-unavailable',
            `The log delivered ${stream} revision ${deliveredBefore}, but a later read does not return it`,
          );
        } else if (reading.newestDelivered < next) {
          return this.#keep(decider, entity, start);
        } else {
          start = entity;
        }
      }
    } finally {
      // In the same synchronous step that keeps the entity: from here on `#fold` brings the resident its events.
      const readings = this.#readings.get(stream);
      readings?.delete(reading);
      if (readings?.size === 0) this.#readings.delete(stream);
    }
  }

  /** Makes the entity resident unless a newer one is; `start` is the entity that the reading continued from. */
  #keep<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    entity: Entity<State>,
    start: Entity<State> | null,
  ): Entity<State> {
    const { stream } = entity;
    const resident = this.#resident(stream);
    if (resident !== undefined) {
      const cached = parseCached(decider, resident.entity);
      if (nextRevision(cached.revision) >= nextRevision(entity.revision) && cached !== start) return cached;
    }
    // An entity without events is not cached: a client could request any number of such names.
    if (entity.revision === 'none') this.#drop(stream);
    else this.#put(stream, makeResident(decider, entity));
    return entity;
  }

  #resident(stream: StreamName): Resident | undefined {
    const large = this.#large;
    return large?.entity.stream === stream ? large : this.#residents.get(stream);
  }

  #put(stream: StreamName, resident: Resident): void {
    const known = this.#resident(stream);
    // Receiving an event does not count as a use: an entity that nobody requests is dropped, however often it changes.
    if (known !== undefined) resident.isReferenced = known.isReferenced;
    if (resident.sizeBytes > LARGE_SHARE * this.#options.cacheSizeBytesMax) {
      this.#drop(stream);
      this.#large = resident;
      return;
    }
    if (known === this.#large) this.#large = null;
    this.#sizeBytes += resident.sizeBytes - (this.#residents.get(stream)?.sizeBytes ?? 0);
    this.#residents.set(stream, resident);
    this.#makeRoom(known === undefined ? stream : null);
  }

  /** `newest` is the stream that was added just now, because a caller requested it. */
  #makeRoom(newest: StreamName | null): void {
    for (const [stream, resident] of this.#residents) {
      if (this.#sizeBytes <= this.#options.cacheSizeBytesMax) return;
      if (resident.isReferenced || stream === newest) {
        resident.isReferenced = false;
        this.#residents.delete(stream);
        this.#residents.set(stream, resident);
      } else {
        this.#drop(stream);
      }
    }
  }

  #drop(stream: StreamName): void {
    if (this.#large?.entity.stream === stream) this.#large = null;
    this.#sizeBytes -= this.#residents.get(stream)?.sizeBytes ?? 0;
    this.#residents.delete(stream);
  }

  #forget(): void {
    this.#generation += 1;
    this.#residents.clear();
    this.#large = null;
    this.#sizeBytes = 0;
    this.#options.onForget?.();
  }

  async #apply(events: readonly RecordedEvent[]): Promise<void> {
    const generation = this.#generation;
    for (const append of wholeAppends(events)) {
      const last = append.at(-1);
      if (last === undefined) continue;
      const { stream, revision } = last;
      this.#notifyReadings(stream, revision);
      const resident = this.#resident(stream);
      if (resident === undefined || revision < nextRevision(resident.entity.revision)) continue;
      try {
        const complete: RecordedEvent[] = [];
        for (const event of append) complete.push(await this.#options.complete(event));
        if (generation !== this.#generation) return;
        // In one synchronous step, so that no reader sees half of an append.
        this.#fold(stream, complete);
      } catch (cause) {
        this.#dropFaulty(stream, cause);
      }
    }
  }

  observe(stream: StreamName, firstRevision: number, position: LogPosition, events: readonly NewEvent[]): void {
    const recorded = events.map((event, index) => ({ ...event, stream, revision: firstRevision + index, position }));
    this.#notifyReadings(stream, firstRevision + events.length - 1);
    try {
      this.#fold(stream, recorded);
    } catch (cause) {
      // The events are committed, so an error of folding must not reach the caller that appended them.
      this.#dropFaulty(stream, cause);
    }
  }

  #notifyReadings(stream: StreamName, revision: number): void {
    for (const reading of this.#readings.get(stream) ?? []) {
      reading.newestDelivered = Math.max(reading.newestDelivered, revision);
    }
  }

  #fold(stream: StreamName, events: readonly StreamEvent[]): void {
    let resident = this.#resident(stream);
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

  /** Drops an entity that could not be folded. The next caller reads it from the log and gets the error from there. */
  #dropFaulty(stream: StreamName, cause: unknown): void {
    this.#drop(stream);
    this.#options.onFault('entity', cause);
  }
}
