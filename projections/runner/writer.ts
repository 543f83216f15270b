/**
 * Writes events into one generation of a model: batches, their checkpoint, and events that cannot be applied.
 *
 * Invariants:
 * - the rows, checkpoint and parked events of a batch are one transaction;
 * - an event is applied, or parked with every later event of its stream, or the writer halts: it is never skipped;
 * - the events of one append are applied, or parked, in one transaction: readers see all of them or none;
 * - after any failed transaction the writer uses nothing that was cached before it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import { wholeAppends } from '../../core/kernel/whole-appends.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { RecordPlace } from '../../core/ports/read-mark.ts';
import { executeWrite } from './bulk.ts';
import { type Checkpoint, checkpointAfter, moveCheckpoint, moveCheckpointWith } from './checkpoint.ts';
import {
  CheckpointMoved,
  describeFault,
  type FaultKind,
  faultKind,
  type ParkingReason,
  ProjectionHalted,
  parkingReason,
  type Retry,
  StreamFault,
} from './faults.ts';
import { insertParked, parkedStreams, setRetry, streamsToRetry } from './parking.ts';
import type { Applier, Queryable, Write } from './projection.ts';
import { replayPage } from './replay.ts';
import type { MovePosition } from './shared-moves.ts';
import { type Generation, tableNames, tablesExist, tablesOf } from './tables.ts';
import { inTransaction } from './transaction.ts';

export interface WriterOptions {
  /** A connection that nothing else uses. */
  readonly connection: Queryable;
  readonly generation: Generation;
  readonly checkpoint: Checkpoint;
  readonly events: Pick<EventStore, 'readStream'>;
  /** Returns the event with the data that it keeps in other streams (the parts of a wide push). */
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  /** True if nobody waits for this writer: then even the longest work is done within the batch. */
  readonly patient: boolean;
  /** Moves the checkpoint past events that the model does not want. */
  readonly movePosition: MovePosition;
  readonly hooks: WriterHooks;
}

export interface WriterHooks {
  /** Called after the commit of a batch, or of a checkpoint move without rows. */
  readonly advanced: (
    position: LogPosition,
    batch: { readonly events: readonly RecordedEvent[]; readonly durationMs: number },
  ) => void;
  readonly parked: (event: RecordedEvent, fault: string, retry: Retry) => void;
}

/** The result of retrying a parked stream. `long`: the replay takes too long to run between batches. */
export type Replayed = 'whole' | 'failed' | 'long';

/**
 * The largest weight of one transaction: bounds memory, and the time that readers wait. Internal: the rest is in
 * further transactions.
 */
const BATCH_WEIGHT_MAX = 20_000;
/** The waits before a failed attempt is repeated. */
const RETRY_DELAYS_MS = [20, 200] as const;
/**
 * The number of failed streams at which the model halts: that many do not fail by chance, so the model, or something it
 * needs, is broken. Streams that exceed a limit of their own do not count: their owners could stop the model for
 * everybody. Internal: only a broken service reaches it.
 */
export const PARKED_STREAMS_MAX = 100;
const NOTHING: Write = { lists: [] };

export class GenerationWriter {
  readonly #options: WriterOptions;
  readonly #parked: Set<string>;
  /** The parked streams on which the model failed. */
  readonly #failed: Set<string>;
  /** Why a stream is parked, until the transaction that parks it is committed. */
  readonly #reasons = new Map<string, ParkingReason>();
  #checkpoint: Checkpoint;
  #applier: Applier | null = null;
  #work: Promise<unknown> = Promise.resolve();

  private constructor(options: WriterOptions, parked: Awaited<ReturnType<typeof parkedStreams>>) {
    this.#options = options;
    this.#checkpoint = options.checkpoint;
    this.#parked = new Set(parked.keys());
    this.#failed = new Set([...parked].filter(([, { beyondBounds }]) => !beyondBounds).map(([stream]) => stream));
  }

  static async open(options: WriterOptions): Promise<GenerationWriter> {
    return new GenerationWriter(options, await parkedStreams(options.connection, options.generation));
  }

  get position(): LogPosition {
    return this.#checkpoint.position;
  }

  /** Applies a batch that a subscription delivers. Throws every failure that is not one stream's own. */
  apply(events: readonly RecordedEvent[], position: LogPosition, lastRecord: RecordPlace | null): Promise<void> {
    return this.#inTurn(async () => {
      const attempts = new Map<string, number>();
      for (;;) {
        const fault = await this.#try(events, position, lastRecord);
        if (fault === null) return;
        if (!(fault instanceof StreamFault)) break;
        const attempt = attempts.get(fault.stream) ?? 0;
        attempts.set(fault.stream, attempt + 1);
        const delayMs = delayBefore(fault, attempt);
        if (delayMs === undefined) this.#startParking(fault.stream, fault);
        else await sleep(delayMs);
      }
      await this.#appendByAppend(events);
      if (position > this.#checkpoint.position) await this.#commit([], position, lastRecord);
    });
  }

  /** Retries parked streams whose time has come, except those that are replayed beside this writer. */
  async retryParked(isElsewhere: (stream: string) => boolean): Promise<ReadonlyMap<string, Replayed>> {
    const results = new Map<string, Replayed>();
    if (this.#parked.size === 0) return results;
    const { connection, generation } = this.#options;
    const streams = await this.#inTurn(() => streamsToRetry(connection, generation));
    // Batches may run between one stream and the next.
    for (const stream of streams) {
      if (!isElsewhere(stream)) results.set(stream, await this.#inTurn(() => this.#replay(stream)));
    }
    return results;
  }

  /** Takes back a stream that was replayed beside this writer; resolves false if more of it was parked since. */
  released(stream: string): Promise<boolean> {
    return this.#inTurn(async () => {
      const parked = await parkedStreams(this.#options.connection, this.#options.generation);
      if (parked.has(stream)) return false;
      this.#release(stream);
      // The applier may have cached what was stored before the replay.
      this.#applier = null;
      return true;
    });
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#work.then(work, work);
    this.#work = done;
    return done;
  }

  #release(stream: string): void {
    this.#parked.delete(stream);
    this.#failed.delete(stream);
  }

  async #appendByAppend(events: readonly RecordedEvent[]): Promise<void> {
    for (const append of wholeAppends(events.filter(({ position }) => position > this.#checkpoint.position))) {
      const last = append.at(-1);
      if (last === undefined) continue;
      for (let attempt = 0; ; attempt += 1) {
        const fault = await this.#try(append, last.position, null);
        if (fault === null) break;
        const delayMs = delayBefore(fault, attempt);
        if (delayMs === undefined) this.#startParking(last.stream, fault);
        else await sleep(delayMs);
      }
    }
  }

  /** Parks the stream's events from now on. Throws `ProjectionHalted` if the model must halt instead. */
  #startParking(stream: string, fault: unknown): void {
    const { projection } = this.#options.generation;
    const reason = parkingReason(fault);
    const isStreamsOwn = reason.retry === 'soon' || (reason.beyondBounds && projection.onPoison === 'park');
    const mayPark = projection.onPoison === 'park' && this.#failed.size < PARKED_STREAMS_MAX;
    if (!isStreamsOwn && (!mayPark || this.#parked.has(stream))) {
      throw new ProjectionHalted(`${projection.name} cannot apply ${stream}: ${describeFault(fault)}`, {
        cause: fault,
      });
    }
    this.#parked.add(stream);
    if (!isStreamsOwn) this.#failed.add(stream);
    this.#reasons.set(stream, reason);
  }

  /** Resolves null if the events were committed, else the failure; throws a failure that the events did not cause. */
  async #try(
    events: readonly RecordedEvent[],
    position: LogPosition,
    lastRecord: RecordPlace | null,
  ): Promise<unknown> {
    try {
      await this.#commit(events, position, lastRecord);
      return null;
    } catch (error) {
      this.#applier = null;
      if ((await this.#kindOf(error)) !== 'fault') throw error;
      return error ?? new Error('A model threw nothing');
    }
  }

  async #commit(
    events: readonly RecordedEvent[],
    position: LogPosition,
    lastRecord: RecordPlace | null,
  ): Promise<void> {
    const { generation, complete } = this.#options;
    const { weight: weigh = () => 1, asStored = false } = generation.projection;
    let chunk: RecordedEvent[] = [];
    let weight = 0;
    // An earlier part of the batch may have been committed before a later part failed.
    const due = events.filter((event) => event.position > this.#checkpoint.position);
    for (const append of wholeAppends(due)) {
      const whole: RecordedEvent[] = [];
      for (const event of append)
        whole.push(asStored || this.#parked.has(event.stream) ? event : await complete(event));
      const added = whole.reduce((sum, event) => sum + weigh(event), 0);
      if (chunk.length > 0 && weight + added > BATCH_WEIGHT_MAX) {
        await this.#commitChunk(chunk, chunk.at(-1)?.position ?? position, null);
        chunk = [];
        weight = 0;
      }
      chunk.push(...whole);
      weight += added;
    }
    await this.#commitChunk(chunk, position, lastRecord);
  }

  async #commitChunk(
    events: readonly RecordedEvent[],
    position: LogPosition,
    lastRecord: RecordPlace | null,
  ): Promise<void> {
    const { connection, generation, movePosition, hooks } = this.#options;
    const startedMs = performance.now();
    const next = checkpointAfter(this.#checkpoint, events, position, lastRecord);
    const parked = events.filter(({ stream }) => this.#parked.has(stream));
    const applicable = parked.length === 0 ? events : events.filter(({ stream }) => !this.#parked.has(stream));
    const move = { generation, from: this.#checkpoint.position, to: next };
    const write = applicable.length === 0 ? NOTHING : await this.#prepare(applicable);
    if (events.length === 0) await movePosition(connection, move);
    else if (write.before === undefined && parked.length === 0) await moveCheckpointWith(connection, move, write.lists);
    else {
      await inTransaction(connection, async () => {
        await moveCheckpoint(connection, move);
        await executeWrite(connection, write);
        await this.#park(parked);
      });
    }
    write.committed?.();
    this.#checkpoint = next;
    for (const event of parked) this.#reportParked(event);
    hooks.advanced(position, { events, durationMs: performance.now() - startedMs });
  }

  async #park(events: readonly RecordedEvent[]): Promise<void> {
    const { connection, generation } = this.#options;
    await insertParked(connection, generation, events);
    for (const stream of new Set(events.map((event) => event.stream))) {
      const reason = this.#reasons.get(stream);
      if (reason !== undefined) await setRetry(connection, generation, stream, reason);
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
    // Moves the checkpoint from its position to the same position: this fails if another writer of this generation
    // moved it.
    const fence = (): Promise<void> =>
      moveCheckpoint(connection, { generation, from: this.#checkpoint.position, to: this.#checkpoint });
    try {
      const context = { connection, generation, events, complete, patient, fence };
      while (await replayPage({ ...context, applier: this.#openApplier() }, stream)) {
        // Each call replays one page in one transaction, until no parked event of the stream is left.
      }
      this.#release(stream);
      return 'whole';
    } catch (error) {
      this.#applier = null;
      if ((await this.#kindOf(error)) !== 'fault') throw error;
      const reason = parkingReason(error);
      if (reason.retry === 'soon') return 'long';
      await setRetry(connection, generation, stream, reason);
      return 'failed';
    }
  }

  /**
   * Classifies a failure. A missing table is a fault of the model, unless another process dropped the whole generation.
   */
  async #kindOf(error: unknown): Promise<FaultKind> {
    const kind = faultKind(error);
    if (kind !== 'stale' || error instanceof CheckpointMoved) return kind;
    const { connection, generation } = this.#options;
    return (await tablesExist(connection, tableNames(generation))) ? 'fault' : 'stale';
  }
}

/** Returns the wait before a retry; undefined if a retry would end the same way. */
function delayBefore(fault: unknown, attempt: number): number | undefined {
  const mayPass = !(fault instanceof StreamFault) || fault.retry === 'later';
  return mayPass ? RETRY_DELAYS_MS[attempt] : undefined;
}
