/**
 * Replays of streams that take long, such as an import of a great history: beside the model's writer, which goes on
 * with every other stream meanwhile.
 *
 * Must stay true: while a stream is parked only its replay writes what comes of it; the writer takes it back only
 * when nothing of it is parked any more.
 */
import type { Pool, PoolClient } from 'pg';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { describeFault, faultKind, StreamFault } from './faults.ts';
import { lockParked, setRetry } from './parking.ts';
import { replayPage } from './replay.ts';
import { type Generation, tablesOf } from './tables.ts';
import { oneAtATime } from './transaction.ts';
import type { GenerationWriter } from './writer.ts';

export interface LongReplaysOptions {
  readonly pool: Pool;
  readonly generation: Generation;
  readonly writer: GenerationWriter;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly complete: (event: RecordedEvent) => Promise<RecordedEvent>;
  readonly log: Log;
}

/** Replays at a time; others wait for their turn. */
const REPLAYS_MAX = 2;

export class LongReplays {
  readonly #options: LongReplaysOptions;
  readonly #running = new Map<string, Promise<void>>();
  readonly #clients = new Set<PoolClient>();
  #closed = false;

  constructor(options: LongReplaysOptions) {
    this.#options = options;
  }

  isRunning(stream: string): boolean {
    return this.#running.has(stream);
  }

  /** Begins to replay a stream, unless that is under way or too many are: the caller asks again. */
  begin(stream: string): void {
    if (this.#closed || this.#running.has(stream) || this.#running.size >= REPLAYS_MAX) return;
    const done = this.#replay(stream).finally(() => this.#running.delete(stream));
    this.#running.set(stream, done);
  }

  /** Gives up what is under way, which is rolled back and begun again by whoever leads next. */
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
        // More of it was parked meanwhile.
      }
      log.info({ ...about, durationMs: Math.round(performance.now() - startedMs) }, 'A long replay is done');
    } catch (error) {
      if (!this.#closed) log.warn({ ...about, fault: describeFault(error) }, 'A long replay failed; it begins again');
    }
  }

  /** Whether the writer has taken the stream back. Throws outages; a fault of the stream is noted there. */
  async #replayParked(stream: string): Promise<boolean> {
    const { pool, writer } = this.#options;
    const client = await pool.connect();
    const ignore = (): void => undefined;
    // What is asked next fails, which says it to whom it concerns.
    client.on('error', ignore);
    if (this.#closed) {
      client.release(true);
      throw new Error('The runner closes');
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
    const { generation, events, complete } = this.#options;
    const connection = oneAtATime(client);
    const applier = generation.projection.open(tablesOf(generation));
    const fence = (upToRevision: number, count: number): Promise<void> =>
      lockParked(connection, generation, stream, upToRevision, count);
    try {
      while (await replayPage({ connection, generation, events, complete, applier, patient: true, fence }, stream)) {
        // One page a transaction, until none is left.
      }
      return true;
    } catch (error) {
      if (faultKind(error) !== 'fault') throw error;
      const retry = error instanceof StreamFault ? error.retry : 'asked';
      await setRetry(connection, generation, stream, describeFault(error), retry);
      return false;
    }
  }
}
