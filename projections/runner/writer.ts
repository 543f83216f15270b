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
import { joined } from './bulk.ts';
import { type Checkpoint, checkpointAfter, moveCheckpoint, moveCheckpointWith } from './checkpoint.ts';
import { CheckpointMoved, describeFault, type FaultKind, faultKind, ProjectionHalted } from './faults.ts';
import { holdEvents, parkedStreams, readParked, removeParked, setRetry, streamsToRetry } from './parking.ts';
import type { Applier, Queryable, Write } from './projection.ts';
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
  readonly hooks: WriterHooks;
}

export interface WriterHooks {
  /** After the commit of a batch, or of a position alone. */
  readonly advanced: (position: LogPosition, batch: { readonly events: number; readonly durationMs: number }) => void;
  readonly parked: (event: RecordedEvent, fault: string) => void;
}

/** Rows that one transaction may be about: a bound for memory and for the time readers wait. */
const BATCH_WEIGHT_MAX = 20_000;
/** Waits before an event that failed is tried again. */
const RETRY_DELAYS_MS = [20, 200] as const;
/** How soon a stream whose fault may pass by itself is tried again. */
const TEMPORARY_RETRY_MS = 15_000;
/** So many streams do not break by themselves: the model is wrong, or something it needs is, and it halts. */
const PARKED_STREAMS_MAX = 100;
const REPLAY_PAGE_EVENTS = 500;
const NOTHING: Write = { lists: [] };

export class GenerationWriter {
  readonly #options: WriterOptions;
  readonly #parked: Set<string>;
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

  /** Applies a batch as a subscription gives it. Throws what is no single event's fault. */
  apply(events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    return this.#alone(async () => {
      try {
        await this.#commit(events, position);
      } catch (error) {
        if ((await this.#kindOf(error)) !== 'fault') throw error;
        await this.#oneByOne(events);
        if (position > this.#checkpoint.position) await this.#commit([], position);
      }
    });
  }

  /** Tries parked streams again whose time has come. Whether each is whole again. */
  async retryParked(): Promise<ReadonlyMap<string, boolean>> {
    const results = new Map<string, boolean>();
    if (this.#parked.size === 0) return results;
    const { connection, generation } = this.#options;
    // Batches go on between one stream and the next.
    const streams = await this.#alone(() => streamsToRetry(connection, generation));
    for (const stream of streams) results.set(stream, await this.#alone(() => this.#replay(stream)));
    return results;
  }

  async #replay(stream: string): Promise<boolean> {
    try {
      while (await this.#replayPage(stream)) {
        // One page a transaction, until none is left.
      }
      this.#parked.delete(stream);
      return true;
    } catch (error) {
      this.#applier = null;
      if ((await this.#kindOf(error)) !== 'fault') throw error;
      const retryAfterMs = this.#isTemporary(error) ? TEMPORARY_RETRY_MS : null;
      await setRetry(this.#options.connection, this.#options.generation, stream, describeFault(error), retryAfterMs);
      return false;
    }
  }

  #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#work.then(work, work);
    this.#work = done;
    return done;
  }

  async #oneByOne(events: readonly RecordedEvent[]): Promise<void> {
    // A part of the batch may have been committed before the failure.
    for (const event of events.filter(({ position }) => position > this.#checkpoint.position)) {
      const fault = await this.#tryOne(event);
      if (fault === null) continue;
      const { projection } = this.#options.generation;
      const goesOn = projection.onPoison === 'park' && this.#parked.size < PARKED_STREAMS_MAX;
      if (!goesOn) {
        const where = `${event.stream} revision ${event.revision} (${event.type})`;
        throw new ProjectionHalted(`${projection.name} cannot apply ${where}: ${describeFault(fault)}`, {
          cause: fault,
        });
      }
      await this.#park(event, fault);
    }
  }

  /** Null when it was applied, else why not. */
  async #tryOne(event: RecordedEvent): Promise<unknown> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await this.#commit([event], event.position);
        return null;
      } catch (error) {
        if ((await this.#kindOf(error)) !== 'fault') throw error;
        const delayMs = RETRY_DELAYS_MS[attempt];
        if (delayMs === undefined) return error ?? new Error('A model threw nothing');
        await sleep(delayMs);
      }
    }
  }

  async #commit(events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    const { generation, complete } = this.#options;
    const weigh = generation.projection.weight ?? (() => 1);
    let chunk: RecordedEvent[] = [];
    let weight = 0;
    for (const event of events) {
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
    const { connection, generation, hooks } = this.#options;
    const startedMs = performance.now();
    const next = checkpointAfter(this.#checkpoint, events, position);
    const held = events.filter(({ stream }) => this.#parked.has(stream));
    const free = held.length === 0 ? events : events.filter(({ stream }) => !this.#parked.has(stream));
    const move = { generation, from: this.#checkpoint.position, to: next };
    try {
      const write = free.length === 0 ? NOTHING : await this.#prepare(free);
      if (write.before === undefined && held.length === 0) await moveCheckpointWith(connection, move, write.lists);
      else {
        await inTransaction(connection, async () => {
          await moveCheckpoint(connection, move);
          await carryOut(connection, write);
          await holdEvents(connection, generation, held);
        });
      }
      write.committed?.();
    } catch (error) {
      this.#applier = null;
      throw error;
    }
    this.#checkpoint = next;
    hooks.advanced(position, { events: events.length, durationMs: performance.now() - startedMs });
  }

  #prepare(events: readonly RecordedEvent[]): Promise<Write> {
    const { connection, generation } = this.#options;
    this.#applier ??= generation.projection.open(tablesOf(generation));
    return this.#applier.prepare(events, connection);
  }

  async #park(event: RecordedEvent, fault: unknown): Promise<void> {
    const { connection, generation, hooks } = this.#options;
    const next = checkpointAfter(this.#checkpoint, [event], event.position);
    const reason = describeFault(fault);
    await inTransaction(connection, async () => {
      await moveCheckpoint(connection, { generation, from: this.#checkpoint.position, to: next });
      await holdEvents(connection, generation, [event]);
      const retryAfterMs = this.#isTemporary(fault) ? TEMPORARY_RETRY_MS : null;
      await setRetry(connection, generation, event.stream, reason, retryAfterMs);
    });
    this.#checkpoint = next;
    this.#parked.add(event.stream);
    hooks.parked(event, reason);
    hooks.advanced(next.position, { events: 1, durationMs: 0 });
  }

  /** Applies the first parked events of a stream; false when there is none. */
  async #replayPage(stream: string): Promise<boolean> {
    const { connection, generation, events, complete } = this.#options;
    const parked = await readParked(connection, generation, stream, REPLAY_PAGE_EVENTS);
    const first = parked[0];
    if (first === undefined) return false;
    const from = first.revision;
    const page = await events.readStream(first.stream, { direction: 'forwards', from, limit: parked.length });
    if (parked.some(({ id }, index) => page[index]?.id !== id)) {
      throw new ProjectionHalted(`The log no longer holds what was parked of ${stream} from revision ${from}`);
    }
    const whole: RecordedEvent[] = [];
    for (const event of page) whole.push(await complete(event));
    const write = await this.#prepare(whole);
    await inTransaction(connection, async () => {
      // Standing still, but fenced: another writer of this generation would fail here.
      await moveCheckpoint(connection, { generation, from: this.#checkpoint.position, to: this.#checkpoint });
      await carryOut(connection, write);
      await removeParked(connection, generation, stream, from + parked.length - 1);
    });
    write.committed?.();
    return true;
  }

  /** A missing table is a fault of the model, unless somebody dropped the generation under it. */
  async #kindOf(error: unknown): Promise<FaultKind> {
    const kind = faultKind(error);
    if (kind !== 'void' || error instanceof CheckpointMoved) return kind;
    const { connection, generation } = this.#options;
    return (await tablesExist(connection, tableNames(generation))) ? 'fault' : 'void';
  }

  #isTemporary(error: unknown): boolean {
    return this.#options.generation.projection.isTemporary?.(error) ?? false;
  }
}

async function carryOut(transaction: Queryable, write: Write): Promise<void> {
  await write.before?.(transaction);
  const statement = joined(write.lists, null);
  if (statement !== null) await transaction.query(statement);
}
