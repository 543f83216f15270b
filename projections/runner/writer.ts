/**
 * Writes events into one generation of a model: batches, their checkpoint, and events that cannot be applied.
 *
 * Must stay true:
 * - rows, checkpoint and parked events of a batch are one transaction;
 * - an event is applied, or parked with every later one of its stream, or the writer halts: never skipped;
 * - after any failed transaction nothing that was cached from before it is used.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { carryOut } from './bulk.ts';
import { type Checkpoint, checkpointAfter, moveCheckpoint, moveCheckpointWith } from './checkpoint.ts';
import {
  CheckpointMoved,
  describeFault,
  type FaultKind,
  faultKind,
  ProjectionHalted,
  type Retry,
  StreamFault,
} from './faults.ts';
import { holdEvents, parkedStreams, setRetry, streamsToRetry } from './parking.ts';
import type { Applier, Queryable, Write } from './projection.ts';
import { replayPage } from './replay.ts';
import type { MovePosition } from './shared-moves.ts';
import { type Generation, tableNames, tablesExist, tablesOf } from './tables.ts';
import { inTransaction } from './transaction.ts';

export interface WriterOptions {
  /** One connection, used by nobody else. */
  readonly connection: Queryable;
  readonly generation: Generation;
  readonly checkpoint: Checkpoint;
  readonly events: Pick<EventStore, 'readStream'>;
  /** Puts back what an event leaves to other streams (a wide push's parts). */
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  /** Whether nobody waits: then nothing takes too long to be done at once. */
  readonly patient: boolean;
  /** Moves the checkpoint past what the model has nothing to do with. */
  readonly movePosition: MovePosition;
  readonly hooks: WriterHooks;
}

export interface WriterHooks {
  /** After the commit of a batch, or of a position alone. */
  readonly advanced: (position: LogPosition, batch: { readonly events: number; readonly durationMs: number }) => void;
  readonly parked: (event: RecordedEvent, fault: string, retry: Retry) => void;
}

/** Why a stream is parked, until it is committed that it is. */
interface Reason {
  readonly fault: string;
  readonly retry: Retry;
}

/** What became of a parked stream that was tried again. `long`: it takes too long to be done between batches. */
export type Replayed = 'whole' | 'failed' | 'long';

/** Rows that one transaction may be about: a bound for memory and for the time readers wait. */
const BATCH_WEIGHT_MAX = 20_000;
/** Waits before what failed is tried again. */
const RETRY_DELAYS_MS = [20, 200] as const;
/** So many streams do not break by themselves: the model is wrong, or something it needs is, and it halts. */
const PARKED_STREAMS_MAX = 100;
const NOTHING: Write = { lists: [] };

export class GenerationWriter {
  readonly #options: WriterOptions;
  readonly #parked: Set<string>;
  readonly #reasons = new Map<string, Reason>();
  #checkpoint: Checkpoint;
  #applier: Applier | null = null;
  #work: Promise<unknown> = Promise.resolve();

  private constructor(options: WriterOptions, parked: ReadonlySet<string>) {
    this.#options = options;
    this.#checkpoint = options.checkpoint;
    this.#parked = new Set(parked);
  }

  static async open(options: WriterOptions): Promise<GenerationWriter> {
    return new GenerationWriter(options, await parkedStreams(options.connection, options.generation));
  }

  get position(): LogPosition {
    return this.#checkpoint.position;
  }

  /** Applies a batch as a subscription gives it. Throws what is no single stream's fault. */
  apply(events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    return this.#alone(async () => {
      const attempts = new Map<string, number>();
      for (;;) {
        const fault = await this.#try(events, position);
        if (fault === null) return;
        if (!(fault instanceof StreamFault)) break;
        const attempt = attempts.get(fault.stream) ?? 0;
        attempts.set(fault.stream, attempt + 1);
        const delayMs = fault.retry === 'soon' ? undefined : RETRY_DELAYS_MS[attempt];
        if (delayMs === undefined) this.#hold(fault.stream, fault, fault.retry);
        else await sleep(delayMs);
      }
      await this.#oneByOne(events);
      if (position > this.#checkpoint.position) await this.#commit([], position);
    });
  }

  /** Tries parked streams again whose time has come, but those that are replayed beside this writer. */
  async retryParked(isElsewhere: (stream: string) => boolean): Promise<ReadonlyMap<string, Replayed>> {
    const results = new Map<string, Replayed>();
    if (this.#parked.size === 0) return results;
    const { connection, generation } = this.#options;
    const streams = await this.#alone(() => streamsToRetry(connection, generation));
    // Batches go on between one stream and the next.
    for (const stream of streams) {
      if (!isElsewhere(stream)) results.set(stream, await this.#alone(() => this.#replay(stream)));
    }
    return results;
  }

  /** Notes that a stream was replayed beside this writer; false when more of it was parked meanwhile. */
  released(stream: string): Promise<boolean> {
    return this.#alone(async () => {
      const parked = await parkedStreams(this.#options.connection, this.#options.generation);
      if (parked.has(stream)) return false;
      this.#parked.delete(stream);
      // It may hold what was stored before the replay.
      this.#applier = null;
      return true;
    });
  }

  #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#work.then(work, work);
    this.#work = done;
    return done;
  }

  async #oneByOne(events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events.filter(({ position }) => position > this.#checkpoint.position)) {
      for (let attempt = 0; ; attempt += 1) {
        const fault = await this.#try([event], event.position);
        if (fault === null) break;
        const delayMs = RETRY_DELAYS_MS[attempt];
        if (delayMs === undefined)
          this.#hold(event.stream, fault, fault instanceof StreamFault ? fault.retry : 'asked');
        else await sleep(delayMs);
      }
    }
  }

  /** From now on the stream's events are parked. Throws when the model must halt instead. */
  #hold(stream: string, fault: unknown, retry: Retry): void {
    const { projection } = this.#options.generation;
    const mayPark = projection.onPoison === 'park' && this.#parked.size < PARKED_STREAMS_MAX;
    if (retry !== 'soon' && (!mayPark || this.#parked.has(stream))) {
      throw new ProjectionHalted(`${projection.name} cannot apply ${stream}: ${describeFault(fault)}`, {
        cause: fault,
      });
    }
    this.#parked.add(stream);
    this.#reasons.set(stream, { fault: describeFault(fault), retry });
  }

  /** Null when the events were committed, else what failed; throws what is no stream's fault. */
  async #try(events: readonly RecordedEvent[], position: LogPosition): Promise<unknown> {
    try {
      await this.#commit(events, position);
      return null;
    } catch (error) {
      this.#applier = null;
      if ((await this.#kindOf(error)) !== 'fault') throw error;
      return error ?? new Error('A model threw nothing');
    }
  }

  async #commit(events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    const { generation, complete } = this.#options;
    const weigh = generation.projection.weight ?? (() => 1);
    let chunk: RecordedEvent[] = [];
    let weight = 0;
    for (const event of events) {
      // A part of the batch may have been committed before another part failed.
      if (event.position <= this.#checkpoint.position) continue;
      const whole = this.#parked.has(event.stream) ? event : await complete(event);
      const added = weigh(whole);
      if (chunk.length > 0 && weight + added > BATCH_WEIGHT_MAX) {
        await this.#commitChunk(chunk, chunk.at(-1)?.position ?? position);
        chunk = [];
        weight = 0;
      }
      chunk.push(whole);
      weight += added;
    }
    await this.#commitChunk(chunk, position);
  }

  async #commitChunk(events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    const { connection, generation, movePosition, hooks } = this.#options;
    const startedMs = performance.now();
    const next = checkpointAfter(this.#checkpoint, events, position);
    const held = events.filter(({ stream }) => this.#parked.has(stream));
    const free = held.length === 0 ? events : events.filter(({ stream }) => !this.#parked.has(stream));
    const move = { generation, from: this.#checkpoint.position, to: next };
    const write = free.length === 0 ? NOTHING : await this.#prepare(free);
    if (events.length === 0) await movePosition(connection, move);
    else if (write.before === undefined && held.length === 0) await moveCheckpointWith(connection, move, write.lists);
    else {
      await inTransaction(connection, async () => {
        await moveCheckpoint(connection, move);
        await carryOut(connection, write);
        await this.#park(held);
      });
    }
    write.committed?.();
    this.#checkpoint = next;
    for (const event of held) this.#reportParked(event);
    hooks.advanced(position, { events: events.length, durationMs: performance.now() - startedMs });
  }

  async #park(held: readonly RecordedEvent[]): Promise<void> {
    const { connection, generation } = this.#options;
    await holdEvents(connection, generation, held);
    for (const stream of new Set(held.map((event) => event.stream))) {
      const reason = this.#reasons.get(stream);
      if (reason !== undefined) await setRetry(connection, generation, stream, reason.fault, reason.retry);
    }
  }

  #reportParked(event: RecordedEvent): void {
    const reason = this.#reasons.get(event.stream);
    if (reason === undefined) return;
    this.#reasons.delete(event.stream);
    this.#options.hooks.parked(event, reason.fault, reason.retry);
  }

  #openApplier(): Applier {
    const { generation } = this.#options;
    this.#applier ??= generation.projection.open(tablesOf(generation));
    return this.#applier;
  }

  #prepare(events: readonly RecordedEvent[]): Promise<Write> {
    const { connection, patient } = this.#options;
    return this.#openApplier().prepare(events, connection, { patient });
  }

  async #replay(stream: string): Promise<Replayed> {
    const { connection, generation, events, complete, patient } = this.#options;
    // Standing still, but fenced: another writer of this generation would fail here.
    const fence = (): Promise<void> =>
      moveCheckpoint(connection, { generation, from: this.#checkpoint.position, to: this.#checkpoint });
    try {
      const context = { connection, generation, events, complete, patient, fence };
      while (await replayPage({ ...context, applier: this.#openApplier() }, stream)) {
        // One page a transaction, until none is left.
      }
      this.#parked.delete(stream);
      return 'whole';
    } catch (error) {
      this.#applier = null;
      if ((await this.#kindOf(error)) !== 'fault') throw error;
      const retry = error instanceof StreamFault ? error.retry : 'asked';
      if (retry === 'soon') return 'long';
      await setRetry(connection, generation, stream, describeFault(error), retry);
      return 'failed';
    }
  }

  /** A missing table is a fault of the model, unless somebody dropped the generation under it. */
  async #kindOf(error: unknown): Promise<FaultKind> {
    const kind = faultKind(error);
    if (kind !== 'void' || error instanceof CheckpointMoved) return kind;
    const { connection, generation } = this.#options;
    return (await tablesExist(connection, tableNames(generation))) ? 'fault' : 'void';
  }
}
