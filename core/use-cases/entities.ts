/**
 * Entities in memory: a bounded cache of aggregates, kept current by a subscription to the log.
 *
 * Must stay true (architecture, invariants 6 and 7):
 * - after `barrier()` resolved, every entity read here is at least as new as the log's head was when the call
 *   was made;
 * - a state is at one revision of its stream, never between; a gap in revisions drops the entity;
 * - memory is bounded whatever the log holds: the subscription starts at the head and only touches residents.
 */
import type { DomainEvent, Decider } from '../kernel/decider.ts';
import { readEvent } from '../kernel/decider.ts';
import {
  LOG_START,
  type LogPosition,
  type NewEvent,
  type RecordedEvent,
  type StreamName,
  streamName,
} from '../kernel/envelope.ts';
import type { Timestamp } from '../kernel/ids.ts';
import { isJsonObject, type JsonObject } from '../kernel/json.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../kernel/limits.ts';
import type { EventStore, ExpectedRevision, Subscription } from '../ports/event-store.ts';
import type { Snapshots } from '../ports/snapshots.ts';

/** An aggregate at a revision of its stream. */
export interface Entity<State> {
  readonly stream: StreamName;
  readonly state: State;
  readonly revision: ExpectedRevision;
  /** Where its last event stands in the log; `LOG_START` while it has none. */
  readonly position: LogPosition;
  /** When its last event happened: the next may not be earlier. */
  readonly lastAt: Timestamp | null;
}

/** Puts back what an event leaves to other streams, before it is folded (a wide push's parts). */
export type Complete = (event: RecordedEvent) => Promise<RecordedEvent>;

type AnyEvent = DomainEvent<string, JsonObject>;

interface Resident {
  entity: Entity<unknown>;
  sizeBytes: number;
  apply(events: readonly RecordedEvent[]): void;
}

export interface EntitiesOptions {
  readonly events: EventStore;
  readonly snapshots: Snapshots;
  readonly complete: Complete;
  readonly cacheSizeBytesMax: number;
  /** A snapshot that could not be saved, a subscription that broke and starts anew, a log that lost its tail. */
  readonly onFault: (what: 'snapshot' | 'subscription' | 'log-went-back', cause: unknown) => void;
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

const STREAM_PAGE_EVENTS = 1_000;

export function createEntities(options: EntitiesOptions): Entities {
  return new EntityCache(options);
}

class EntityCache implements Entities {
  readonly #options: EntitiesOptions;
  /** Insertion order is the order of use: the first is the next to go. */
  readonly #residents = new Map<StreamName, Resident>();
  readonly #loads = new Map<StreamName, { promise: Promise<Entity<unknown>>; arrived: RecordedEvent[] }>();
  #sizeBytes = 0;
  #applied: LogPosition = LOG_START;
  #subscription: Subscription | null = null;
  #closed = false;
  #waiters: { readonly position: LogPosition; readonly resolve: () => void }[] = [];
  #headWaiters: { resolve(position: LogPosition): void; reject(cause: unknown): void }[] = [];
  #headReading = false;

  constructor(options: EntitiesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#applied = await this.#options.events.head();
    this.#subscribe();
  }

  #subscribe(): void {
    const subscription = this.#options.events.subscribe({
      after: this.#applied,
      onEvents: (events, position) => this.#apply(events, position),
    });
    this.#subscription = subscription;
    subscription.closed.catch((cause: unknown) => {
      if (this.#closed) return;
      // What broke may have left entities half folded: memory is a cache, so begin again with none.
      this.#options.onFault('subscription', cause);
      this.#residents.clear();
      this.#sizeBytes = 0;
      this.#subscribe();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#subscription?.close();
  }

  barrier(): Promise<LogPosition> {
    const head = new Promise<LogPosition>((resolve, reject) => this.#headWaiters.push({ resolve, reject }));
    if (!this.#headReading) void this.#readHeads();
    return head.then((position) => this.#caughtUp(position));
  }

  /** One query serves every call that arrived before it was sent. */
  async #readHeads(): Promise<void> {
    this.#headReading = true;
    while (this.#headWaiters.length > 0) {
      const waiting = this.#headWaiters;
      this.#headWaiters = [];
      const appliedBefore = this.#applied;
      try {
        const position = await this.#options.events.head();
        if (position < appliedBefore) await this.#forget(position);
        for (const waiter of waiting) waiter.resolve(position);
      } catch (cause) {
        for (const waiter of waiting) waiter.reject(cause);
      }
    }
    this.#headReading = false;
  }

  /** The log is behind this node: a failover lost its tail, so what memory holds may never have happened. */
  async #forget(head: LogPosition): Promise<void> {
    this.#options.onFault('log-went-back', new Error(`The log's head is ${head}, this node had seen ${this.#applied}`));
    await this.#subscription?.close();
    this.#residents.clear();
    this.#sizeBytes = 0;
    this.#applied = head;
    this.#subscribe();
  }

  #caughtUp(position: LogPosition): LogPosition | Promise<LogPosition> {
    if (this.#applied >= position) return position;
    this.#subscription?.pull();
    return new Promise<LogPosition>((resolve) => {
      this.#waiters.push({ position, resolve: () => resolve(position) });
    });
  }

  async #apply(events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    for (const event of events) {
      const load = this.#loads.get(event.stream);
      const resident = this.#residents.get(event.stream);
      if (load === undefined && resident === undefined) continue;
      const complete = await this.#options.complete(event);
      // A load may have begun or ended while the parts were read.
      this.#loads.get(event.stream)?.arrived.push(complete);
      const current = this.#residents.get(event.stream);
      if (current !== undefined) this.#fold(event.stream, current, [complete]);
    }
    this.#applied = position;
    const waiting = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiting) {
      if (waiter.position <= position) waiter.resolve();
      else this.#waiters.push(waiter);
    }
  }

  #fold(stream: StreamName, resident: Resident, events: readonly RecordedEvent[]): void {
    const next = nextRevision(resident.entity.revision);
    const fresh = events.filter((event) => event.revision >= next);
    const first = fresh[0];
    if (first === undefined) return;
    if (first.revision > next) {
      this.#drop(stream);
      return;
    }
    const before = resident.sizeBytes;
    resident.apply(fresh);
    this.#sizeBytes += resident.sizeBytes - before;
  }

  #drop(stream: StreamName): void {
    const resident = this.#residents.get(stream);
    if (resident === undefined) return;
    this.#residents.delete(stream);
    this.#sizeBytes -= resident.sizeBytes;
  }

  async get<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>> {
    const stream = streamName(decider.category, id);
    const resident = this.#residents.get(stream);
    if (resident !== undefined) {
      this.#residents.delete(stream);
      this.#residents.set(stream, resident);
      return resident.entity as Entity<State>;
    }
    const running = this.#loads.get(stream);
    if (running !== undefined) return running.promise as Promise<Entity<State>>;
    return this.#load(decider, stream);
  }

  reload<State, Event extends AnyEvent>(decider: Decider<State, Event>, id: string): Promise<Entity<State>> {
    const stream = streamName(decider.category, id);
    const resident = this.#residents.get(stream);
    return resident === undefined
      ? this.#load(decider, stream)
      : this.#catchUp(stream, resident as Resident).then((entity) => entity as Entity<State>);
  }

  /** Reads what the stream has beyond the resident's revision: a conflict is mostly one event away. */
  async #catchUp(stream: StreamName, resident: Resident): Promise<Entity<unknown>> {
    for (;;) {
      const from = nextRevision(resident.entity.revision);
      const page = await this.#options.events.readStream(stream, {
        direction: 'forwards',
        from,
        limit: STREAM_PAGE_EVENTS,
      });
      const complete = await Promise.all(page.map((event) => this.#options.complete(event)));
      this.#fold(stream, resident, complete);
      if (page.length < STREAM_PAGE_EVENTS) return resident.entity;
    }
  }

  #load<State, Event extends AnyEvent>(decider: Decider<State, Event>, stream: StreamName): Promise<Entity<State>> {
    const arrived: RecordedEvent[] = [];
    const promise = this.#read(decider, stream).then((entity) => this.#settle(decider, entity, arrived));
    this.#loads.set(stream, { promise, arrived });
    const done = (): void => {
      this.#loads.delete(stream);
    };
    promise.then(done, done);
    return promise;
  }

  async #read<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    stream: StreamName,
  ): Promise<Entity<State>> {
    let entity: Entity<State> = {
      stream,
      state: decider.initial,
      revision: 'none',
      position: LOG_START,
      lastAt: null,
    };
    const codec = decider.snapshots;
    let folded = 0;
    if (codec !== null) {
      const snapshot = await this.#options.snapshots.latest(stream, codec.version);
      if (snapshot !== null && isJsonObject(snapshot.state)) {
        entity = { ...entity, state: codec.read(snapshot.state), revision: snapshot.revision };
        // The snapshot's own event is read again for its position and time, which a snapshot does not hold.
        const [last] = await this.#options.events.readStream(stream, {
          direction: 'forwards',
          from: snapshot.revision,
          limit: 1,
        });
        if (last === undefined) throw new TypeError(`A snapshot of ${stream} is ahead of its stream`);
        entity = { ...entity, position: last.position, lastAt: last.occurredAt };
      }
    }
    for (;;) {
      const page = await this.#options.events.readStream(stream, {
        direction: 'forwards',
        from: nextRevision(entity.revision),
        limit: STREAM_PAGE_EVENTS,
      });
      for (const event of page) entity = evolve(decider, entity, await this.#options.complete(event));
      folded += page.length;
      if (page.length < STREAM_PAGE_EVENTS) break;
    }
    if (folded >= SNAPSHOT_INTERVAL_EVENTS) this.#saveSnapshot(decider, entity);
    return entity;
  }

  #settle<State, Event extends AnyEvent>(
    decider: Decider<State, Event>,
    loaded: Entity<State>,
    arrived: readonly RecordedEvent[],
  ): Entity<State> {
    let entity = loaded;
    for (const event of arrived) {
      if (event.revision === nextRevision(entity.revision)) entity = evolve(decider, entity, event);
    }
    this.#drop(entity.stream);
    const resident: Resident = {
      entity,
      sizeBytes: decider.sizeBytes(entity.state),
      apply: (events) => {
        for (const event of events) {
          const next = evolve(decider, resident.entity as Entity<State>, event);
          resident.entity = next;
          if (event.revision % SNAPSHOT_INTERVAL_EVENTS === 0) this.#saveSnapshot(decider, next);
        }
        resident.sizeBytes = decider.sizeBytes((resident.entity as Entity<State>).state);
      },
    };
    this.#residents.set(entity.stream, resident);
    this.#sizeBytes += resident.sizeBytes;
    for (const stream of this.#residents.keys()) {
      if (this.#sizeBytes <= this.#options.cacheSizeBytesMax || stream === entity.stream) break;
      this.#drop(stream);
    }
    return entity;
  }

  #saveSnapshot<State, Event extends AnyEvent>(decider: Decider<State, Event>, entity: Entity<State>): void {
    const state = decider.snapshots?.write(entity.state) ?? null;
    if (decider.snapshots === null || state === null || entity.revision === 'none') return;
    const { version: codeVersion } = decider.snapshots;
    this.#options.snapshots
      .save({ stream: entity.stream, revision: entity.revision, codeVersion, state })
      .catch((cause: unknown) => this.#options.onFault('snapshot', cause));
  }

  observe(stream: StreamName, firstRevision: number, position: LogPosition, events: readonly NewEvent[]): void {
    const resident = this.#residents.get(stream);
    if (resident === undefined) return;
    const recorded = events.map((event, index) => ({ ...event, stream, revision: firstRevision + index, position }));
    this.#fold(stream, resident, recorded);
  }

  appliedPosition(): LogPosition {
    return this.#applied;
  }

  residents(): { readonly count: number; readonly sizeBytes: number } {
    return { count: this.#residents.size, sizeBytes: this.#sizeBytes };
  }
}

function evolve<State, Event extends AnyEvent>(
  decider: Decider<State, Event>,
  entity: Entity<State>,
  recorded: RecordedEvent,
): Entity<State> {
  return {
    stream: entity.stream,
    state: decider.evolve(entity.state, readEvent(decider.kinds, recorded), recorded.occurredAt),
    revision: recorded.revision,
    position: recorded.position,
    lastAt: recorded.occurredAt,
  };
}

function nextRevision(revision: ExpectedRevision): number {
  return revision === 'none' ? 0 : revision + 1;
}
