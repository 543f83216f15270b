/**
 * Replays of streams that take long, such as the import of a large history. They run beside the model's writer, which
 * continues with every other stream.
 *
 * Invariants: while a stream is parked, only its replay writes the stream's rows. The writer takes the stream back
 * only when none of its events is parked any more.
 */
import type { Pool, PoolClient } from 'pg';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { describeFault, faultKind, parkingReason } from './faults.ts';
import { lockParked, setRetry } from './parking.ts';
import { replayPage } from './replay.ts';
import { type Generation, tablesOf } from './tables.ts';
import { serialized } from './transaction.ts';
import type { GenerationWriter } from './writer.ts';

export interface LongReplaysOptions {
  readonly pool: Pool;
  readonly generation: Generation;
  readonly writer: GenerationWriter;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly log: Log;
}

/** Replays at a time; others wait for their turn. Internal: further replays wait. */
const REPLAYS_MAX = 2;

export class LongReplays {
  readonly #options: LongReplaysOptions;
  readonly #running = new Map<string, Promise<void>>();
  /**
   * Streams that wait for their turn. The writer does not retry them between batches, because they are known to take
   * long.
   */
  readonly #waiting = new Set<string>();
  readonly #clients = new Set<PoolClient>();
  #closed = false;

  constructor(options: LongReplaysOptions) {
    this.#options = options;
  }

  /** Returns whether a stream is being replayed or waits for its turn. */
  isRunning(stream: string): boolean {
    return this.#running.has(stream) || this.#waiting.has(stream);
  }

  /** Replays a stream as soon as there is room for it; does nothing if it runs or waits already. */
  begin(stream: string): void {
    if (this.#closed || this.isRunning(stream)) return;
    this.#waiting.add(stream);
    this.#beginWaiting();
  }

  #beginWaiting(): void {
    for (const stream of this.#waiting) {
      if (this.#closed || this.#running.size >= REPLAYS_MAX) return;
      this.#waiting.delete(stream);
      const done = this.#replay(stream).finally(() => {
        this.#running.delete(stream);
        this.#beginWaiting();
      });
      this.#running.set(stream, done);
    }
  }

  /** Cancels running replays: PostgreSQL rolls them back, and the next leader starts them again. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const client of this.#clients) client.release(true);
    this.#clients.clear();
    await Promise.all(this.#running.values());
  }

  async #replay(stream: string): Promise<void> {
    const { generation, log } = this.#options;
    const about = { projection: generation.projection.name, stream };
    try {
      const startedMs = performance.now();
      while (!(await this.#replayParked(stream))) {
        // More of the stream was parked since.
      }
      log.info({ ...about, durationMs: Math.round(performance.now() - startedMs) }, 'A long replay is done');
    } catch (error) {
      if (!this.#closed)
        log.warn({ ...about, fault: describeFault(error) }, 'A long replay failed; it will start again');
    }
  }

  /**
   * Resolves true if the stream needs no further replay now: the writer took it back, or it failed and stays parked.
   * Throws outages.
   */
  async #replayParked(stream: string): Promise<boolean> {
    const { pool, writer } = this.#options;
    const client = await pool.connect();
    const ignore = (): void => undefined;
    // Without a listener the event would end the process; the next statement on the connection fails and reports the
    // loss.
    client.on('error', ignore);
    if (this.#closed) {
      client.release(true);
      throw new Error('The runner is closing');
    }
    this.#clients.add(client);
    try {
      await client.query('SET synchronous_commit = off');
      const whole = await this.#replayOn(client, stream);
      return !whole || (await writer.released(stream));
    } finally {
      // Unless `close` has released it.
      if (this.#clients.delete(client)) client.release(true);
    }
  }

  async #replayOn(client: PoolClient, stream: string): Promise<boolean> {
    const { generation, events, complete, log } = this.#options;
    const connection = serialized(client);
    const applier = generation.projection.open(tablesOf(generation));
    const fence = (upToRevision: number, count: number): Promise<void> =>
      lockParked(connection, generation, stream, upToRevision, count);
    try {
      while (await replayPage({ connection, generation, events, complete, applier, patient: true, fence }, stream)) {
        // Each call replays one page in one transaction, until no parked event of the stream is left.
      }
      return true;
    } catch (error) {
      if (faultKind(error) !== 'fault') throw error;
      const reason = parkingReason(error);
      await setRetry(connection, generation, stream, reason);
      log.error({ projection: generation.projection.name, stream, fault: reason.fault }, 'A stream stays parked');
      return false;
    }
  }
}
