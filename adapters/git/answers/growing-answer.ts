/**
 * An answer of git in a file that grows, with those who follow it.
 *
 * Invariants: no byte is written before it is reserved, and the reservation ends when the last file that holds the
 * bytes is closed. Every follower gets the same bytes. What finds no room goes from git to those who follow now, at the
 * pace of the slowest; the file then leaves as soon as they have read it. git takes a slot for slow readers only when
 * one of them is slow.
 */
import { type FileHandle, open, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPacing, type Pacing } from '../process/git-commands.ts';
import type { Reservation } from './answer-disk-budget.ts';
import { type AnswerFiles, readSome } from './answer-files.ts';

/** A reader who takes a chunk of 64 KiB within this time is waited for, without a slot for slow readers. */
const READER_WAIT_MS = 100;
const QUICK_BYTES = 64 * 1024;

/** Resolves when the reader has taken something, or has taken longer than a quick reader does. */
export async function waitForQuickReader(woken: Promise<void>): Promise<void> {
  const waiting = new AbortController();
  await Promise.race([woken, sleep(READER_WAIT_MS, null, { signal: waiting.signal }).catch(() => null)]);
  waiting.abort();
}

/** Makes an answer; `pacing` hands on that it goes to a slow reader as it is made. */
export type MakeAnswer = (signal: AbortSignal, pacing: Pacing) => AsyncIterable<Uint8Array>;

/** Somebody who reads an answer. */
export interface Follower {
  /** The bytes that it has read. */
  at: number;
}

export interface GrowingAnswerOptions {
  readonly key: string;
  readonly files: AnswerFiles;
  readonly reservation: Reservation;
  /** The answer will not be kept: whoever asks for it from now on needs another. */
  readonly onPassed: () => void;
  readonly onMade: (bytes: number) => void;
  readonly onFault: (error: unknown) => void;
}

export class GrowingAnswer {
  readonly key: string;
  readonly path: string;
  /** Bytes in the file. */
  written = 0;
  state: 'growing' | 'whole' | 'failed' = 'growing';
  readonly reservation: Reservation;
  readonly #options: GrowingAnswerOptions;
  readonly #followers = new Set<Follower>();
  readonly #stop = new AbortController();
  /** Null when the answer is made: it holds the process and its sockets, which must not live as long as the answer. */
  #pacing: Pacing | null = null;
  /** The bytes that follow those in the file and go only to those who follow now; null while the file grows. */
  #passed: { readonly from: number; readonly bytes: Uint8Array } | null = null;
  #failure: unknown = null;
  #waiting: (() => void)[] = [];
  #openFiles = 0;
  #removing: Promise<void> | null = null;
  #isRemoved = false;
  #begun: Promise<boolean> = Promise.resolve(false);

  constructor(options: GrowingAnswerOptions) {
    this.#options = options;
    this.key = options.key;
    this.path = options.files.newPath();
    this.reservation = options.reservation;
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  /** Begins to make the answer, synchronously; `onEnd` follows the last byte, or the failure. */
  begin(make: MakeAnswer, onEnd: () => void): void {
    this.#begun = this.#write(make, onEnd);
    // Whoever follows gets the error.
    this.#begun.catch(() => undefined);
  }

  /** Counts a follower from now on, so that the answer goes on being made. */
  join(): Follower {
    const follower = { at: 0 };
    this.#followers.add(follower);
    return follower;
  }

  /** Whether git is to go on: somebody follows, or everything is made. Else it is stopped. */
  leave(follower: Follower): boolean {
    this.#followers.delete(follower);
    this.wake();
    if (this.isFollowed || this.state !== 'growing') return true;
    this.#stop.abort(new Error('The last follower left'));
    return false;
  }

  /** Null when the answer has no file. Rejects with ENOENT when somebody deleted it. */
  async openToRead(): Promise<FileHandle | null> {
    if (!(await this.#begun)) return null;
    this.#openFiles += 1;
    try {
      return await open(this.path, 'r');
    } catch (error) {
      this.#closed();
      throw error;
    }
  }

  async close(file: FileHandle): Promise<void> {
    try {
      await file.close();
    } finally {
      this.#closed();
    }
  }

  /** Resolves when the file is gone. Those who have it open can still read it to its end. */
  remove(): Promise<void> {
    this.#removing ??= rm(this.path, { force: true })
      .then(() => {
        this.#isRemoved = true;
        this.#giveBack();
      })
      .catch(this.#options.onFault);
    return this.#removing;
  }

  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  /** Yields the answer to a follower, and closes the file. Rejects when the answer fails, or the signal aborts. */
  async *read(follower: Follower, opened: FileHandle | null, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    let file = opened;
    try {
      for (;;) {
        signal.throwIfAborted();
        const passed = this.#passed;
        if (file !== null && follower.at < this.written) {
          const chunk = await readSome(file, follower.at, this.written);
          yield chunk;
          follower.at += chunk.length;
        } else if (passed !== null && passed.from === follower.at) {
          // The bytes of the file are off the disk as soon as nobody has it open.
          if (file !== null) await this.close(file);
          file = null;
          yield passed.bytes;
          // Only now does git go on: the slowest follower sets its pace.
          follower.at += passed.bytes.length;
          this.wake();
        } else if (this.state === 'growing') {
          await this.#woken();
        } else if (this.state === 'failed') {
          throw this.#failure;
        } else return;
      }
    } finally {
      if (file !== null) await this.close(file);
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #closed(): void {
    this.#openFiles -= 1;
    this.#giveBack();
  }

  #giveBack(): void {
    if (this.#isRemoved && this.#openFiles === 0) this.reservation.release();
  }

  /** Resolves when the file is there, which grows from then on; false if the answer goes to its followers alone. */
  async #write(make: MakeAnswer, onEnd: () => void): Promise<boolean> {
    this.#openFiles += 1;
    try {
      const file = await this.#options.files.create(this.path);
      const pacing = createPacing();
      this.#pacing = pacing;
      this.#grow(file, make(this.#stop.signal, pacing)).then(onEnd, this.#options.onFault);
      return file !== null;
    } catch (error) {
      this.state = 'failed';
      this.#failure = error;
      this.#closed();
      onEnd();
      throw error;
    }
  }

  /** Writes the answer into its file and wakes its followers. Never rejects. */
  async #grow(created: FileHandle | null, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    let file = created;
    const closeFile = async (): Promise<void> => {
      const closing = file;
      file = null;
      if (closing === null) return;
      await this.close(closing);
    };
    if (file === null) this.#closed();
    try {
      for await (const chunk of chunks) {
        this.#options.onMade(chunk.length);
        if (file !== null && (await this.#keep(file, chunk))) this.written += chunk.length;
        else {
          // Some file systems report only at close that they are full.
          await closeFile();
          await this.#pass(chunk);
        }
        this.wake();
      }
      await closeFile();
      this.state = 'whole';
    } catch (error) {
      this.state = 'failed';
      this.#failure = error;
      // Followers get the first error.
      await closeFile().catch(() => undefined);
    }
    this.#pacing = null;
    this.wake();
  }

  async #keep(file: FileHandle, chunk: Uint8Array): Promise<boolean> {
    const { reservation, written } = this;
    return (await reservation.holds(written + chunk.length)) && (await this.#options.files.write(file, chunk, written));
  }

  /** Hands the bytes to those who follow now, and waits until each has them: they are kept nowhere. */
  async #pass(bytes: Uint8Array): Promise<void> {
    if (this.#passed === null) {
      this.#options.onPassed();
      this.remove().catch(this.#options.onFault);
    }
    const from = this.#passed === null ? this.written : this.#passed.from + this.#passed.bytes.length;
    this.#passed = { from, bytes };
    this.wake();
    await this.#taken(from + bytes.length);
  }

  /** Waits until each follower has the bytes before `end`. */
  async #taken(end: number): Promise<void> {
    let [sinceMs, before] = [performance.now(), this.#slowestAt()];
    while (this.#slowestAt() < end) {
      if (this.#pacing?.isSlow() === true) {
        await this.#woken();
        continue;
      }
      await waitForQuickReader(this.#woken());
      if (performance.now() - sinceMs < READER_WAIT_MS) continue;
      if (this.#slowestAt() < Math.min(end, before + QUICK_BYTES)) await this.#pacing?.slowDown();
      [sinceMs, before] = [performance.now(), this.#slowestAt()];
    }
  }

  #slowestAt(): number {
    return Math.min(...[...this.#followers].map(({ at }) => at));
  }
}
