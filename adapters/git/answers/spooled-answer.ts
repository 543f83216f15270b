/**
 * What git makes for one reader: it waits in memory, then on disk, so that git ends although its reader is slow.
 *
 * Invariants: the reader gets the bytes in order; git waits for it only where there is no room, after it took one of
 * the slots that are kept for slow readers; the file and its reservation end with the reading.
 */
import { type FileHandle, rm } from 'node:fs/promises';
import { createPacing, type Pacing } from '../process/git-commands.ts';
import type { Reservation } from './answer-disk-budget.ts';
import { type AnswerFiles, readSome } from './answer-files.ts';
import { type MakeAnswer, waitForQuickReader } from './growing-answer.ts';

/**
 * What waits in memory for one reader, and for all of them; a single chunk may always. Internal: the rest is read from
 * the file of the answer.
 */
const QUEUE_BYTES_MAX = 256 * 1024;
const QUEUES_BYTES_MAX = 32 * 1024 * 1024;

/** The memory of all that waits for its readers. */
export interface QueuedBytes {
  bytes: number;
}

export interface SpoolOptions {
  readonly files: AnswerFiles;
  readonly reservation: Reservation;
  readonly queued: QueuedBytes;
  readonly onMade: (bytes: number) => void;
}

export async function* spooled(
  options: SpoolOptions,
  make: MakeAnswer,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const stop = new AbortController();
  const spool = new Spool(options);
  const leave = (): void => {
    stop.abort(signal.reason);
    spool.leave();
  };
  signal.throwIfAborted();
  signal.addEventListener('abort', leave, { once: true });
  const pacing = createPacing();
  // Its failure is the reader's.
  const filling = spool.fill(make(stop.signal, pacing), pacing).catch(() => undefined);
  try {
    yield* spool.read();
    signal.throwIfAborted();
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
    await filling;
    await spool.close();
  }
}

class Spool {
  readonly #options: SpoolOptions;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /**
   * What follows the queue: the bytes of the file from `from` to `to`. It is used from its start whenever it is empty.
   */
  #file: FileHandle | null = null;
  #from = 0;
  #to = 0;
  #state: 'filling' | 'whole' | 'failed' | 'left' = 'filling';
  #failure: unknown = null;
  #waiting: (() => void)[] = [];

  constructor(options: SpoolOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async fill(chunks: AsyncIterable<Uint8Array>, pacing: Pacing): Promise<void> {
    try {
      for await (const chunk of chunks) {
        this.#options.onMade(chunk.length);
        await this.#put(chunk, pacing);
        if (this.#state === 'left') return;
        this.#wake();
      }
      if (this.#state === 'filling') this.#state = 'whole';
    } catch (error) {
      if (this.#state === 'filling') this.#state = 'failed';
      this.#failure = error;
    }
    this.#wake();
  }

  async *read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.#state === 'failed') throw this.#failure;
      if (this.#state === 'left') return;
      const chunk = this.#queue.shift();
      if (chunk !== undefined) {
        this.#count(-chunk.length);
        this.#wake();
        yield chunk;
      } else if (this.#file !== null && this.#from < this.#to) {
        const bytes = await readSome(this.#file, this.#from, this.#to);
        this.#from += bytes.length;
        if (this.#from === this.#to) [this.#from, this.#to] = [0, 0];
        this.#wake();
        yield bytes;
      } else if (this.#state === 'whole') return;
      else await this.#woken();
    }
  }

  /** The reader takes nothing more. */
  leave(): void {
    this.#state = 'left';
    this.#count(-this.#queuedBytes);
    this.#queue = [];
    this.#wake();
  }

  async close(): Promise<void> {
    try {
      await this.#file?.close();
    } finally {
      this.#options.reservation.release();
    }
  }

  async #put(chunk: Uint8Array, pacing: Pacing): Promise<void> {
    if (this.#enqueue(chunk)) return;
    // A reader that is quick enough costs no disk.
    if (this.#to === 0) await waitForQuickReader(this.#woken());
    for (;;) {
      if (this.#state === 'left' || this.#enqueue(chunk) || (await this.#store(chunk))) return;
      await pacing.slowDown();
      if (this.#enqueue(chunk)) return;
      await this.#woken();
    }
  }

  #enqueue(chunk: Uint8Array): boolean {
    const { queued } = this.#options;
    // What is in the file comes first.
    if (this.#to > 0) return false;
    const bytes = this.#queuedBytes + chunk.length;
    const fits = bytes <= QUEUE_BYTES_MAX && queued.bytes + chunk.length <= QUEUES_BYTES_MAX;
    if (!fits && this.#queue.length > 0) return false;
    this.#queue.push(chunk);
    this.#count(chunk.length);
    return true;
  }

  async #store(chunk: Uint8Array): Promise<boolean> {
    const { files, reservation } = this.#options;
    if (!(await reservation.holds(this.#to + chunk.length))) return false;
    this.#file ??= await this.#create();
    if (this.#file === null) return false;
    // While it is written the reader may empty the file, whose next bytes are then at its start.
    const at = this.#to;
    if (!(await files.write(this.#file, chunk, at))) return false;
    if (at > 0 && this.#to === 0) {
      this.#from = at;
    }
    this.#to = at + chunk.length;
    return true;
  }

  /** Nobody else opens it, so its name goes immediately: nothing is left of it after a crash. */
  async #create(): Promise<FileHandle | null> {
    const { files } = this.#options;
    const path = files.newPath();
    const file = await files.create(path);
    await rm(path, { force: true });
    return file;
  }

  #count(bytes: number): void {
    this.#queuedBytes += bytes;
    this.#options.queued.bytes += bytes;
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
