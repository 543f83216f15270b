/**
 * Caches whole answers of git upload-pack on this node's disk: one CI pipeline makes the same clone hundreds of times
 * (docs/git-path.md, Answers are cached whole).
 *
 * Must stay true: an answer is kept only if git ended without an error; a request for an answer that is being made
 * reads the growing file, and fails if git fails; git runs as long as at least one request follows its answer. On a full
 * disk the kept answers go first; then an answer goes from git to its followers at the pace of the slowest.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';
import { isDiskFull } from './layer-fetch.ts';

const READ_CHUNK_BYTES = 1024 * 1024;
/** How often a request looks for the file of its answer while somebody deletes the cache. */
const OPENINGS_MAX = 3;

export interface AnswerCache {
  /**
   * Yields the answer of this key: from the cache, from an earlier request that is still making it, or made now. The
   * request stops following when its iteration ends or its signal aborts.
   */
  follow(
    key: string,
    signal: AbortSignal,
    make: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array>;
  /** Keeps no answer of the keys that begin with this text; who follows one reads it to its end. */
  drop(keyStart: string): void;
  /** Returns the keys of all answers, growing ones included. */
  keys(): readonly string[];
  /** Keeps none of the whole answers; resolves when their files are gone. */
  makeRoom(): Promise<void>;
}

export interface AnswerCacheOptions {
  /** Emptied at start; created again when it is deleted. */
  readonly directory: string;
  readonly bytesMax: number;
  readonly onFault: (error: unknown) => void;
}

/** An answer's file on disk, complete or still growing. */
interface Answer {
  readonly key: string;
  readonly path: string;
  /** Bytes in the file. */
  written: number;
  /** The bytes that follow those in the file and go only to those who follow now; null while the file grows. */
  passed: { readonly from: number; readonly bytes: Uint8Array } | null;
  state: 'growing' | 'whole' | 'failed';
  failure: unknown;
  readonly followers: Set<Follower>;
  /** Whether it may be kept when it is whole. */
  wanted: boolean;
  readonly stop: AbortController;
  waiting: (() => void)[];
  /** Resolves when the file is there, before which nobody else may open it; false if there is no room for one. */
  begun: Promise<boolean>;
}

interface Follower {
  /** The bytes that it has read. */
  at: number;
}

/** Starts with an empty directory: files of an earlier process may be incomplete. */
export async function createAnswerCache(options: AnswerCacheOptions): Promise<AnswerCache> {
  await rm(options.directory, { recursive: true, force: true });
  await mkdir(options.directory, { recursive: true });
  return new KeptAnswers(options);
}

type Make = (signal: AbortSignal) => AsyncIterable<Uint8Array>;

class KeptAnswers implements AnswerCache {
  readonly #options: AnswerCacheOptions;
  readonly #whole: LRUCache<string, Answer>;
  readonly #growing = new Map<string, Answer>();
  #removing: Promise<unknown> = Promise.resolve();

  constructor(options: AnswerCacheOptions) {
    this.#options = options;
    this.#whole = new LRUCache({
      maxSize: options.bytesMax,
      sizeCalculation: (answer) => Math.max(1, answer.written),
      dispose: (answer) => this.#remove(answer),
    });
  }

  async *follow(key: string, signal: AbortSignal, make: Make): AsyncGenerator<Uint8Array> {
    const follower: Follower = { at: 0 };
    const { answer, file } = await this.#join(key, follower, make);
    const stopWaiting = (): void => wake(answer);
    signal.addEventListener('abort', stopWaiting, { once: true });
    try {
      yield* readGrowing(answer, file, follower, signal);
    } finally {
      signal.removeEventListener('abort', stopWaiting);
      this.#leave(answer, follower);
      await file?.close();
    }
  }

  drop(keyStart: string): void {
    for (const key of Array.from(this.#whole.keys())) if (key.startsWith(keyStart)) this.#whole.delete(key);
    for (const answer of this.#growing.values()) {
      if (!answer.key.startsWith(keyStart)) continue;
      answer.wanted = false;
      this.#forgetGrowing(answer);
    }
  }

  keys(): readonly string[] {
    return [...this.#whole.keys(), ...this.#growing.keys()];
  }

  async makeRoom(): Promise<void> {
    this.#whole.clear();
    await this.#removing;
  }

  async #join(
    key: string,
    follower: Follower,
    make: Make,
  ): Promise<{ readonly answer: Answer; readonly file: FileHandle | null }> {
    for (let attempt = 1; ; attempt += 1) {
      const known = this.#growing.get(key) ?? this.#whole.get(key) ?? this.#begin(key, make);
      // Count this follower before the first await: otherwise git would be stopped when all the others leave.
      known.followers.add(follower);
      const file = await this.#open(known, follower);
      if (file !== 'deleted') return { answer: known, file };
      if (attempt === OPENINGS_MAX) throw new Error('The file of a cached answer was deleted each time it began');
    }
  }

  /** Synchronous, so that all who want an answer at the same time follow one. */
  #begin(key: string, make: Make): Answer {
    const answer: Answer = {
      key,
      path: join(this.#options.directory, randomUUID()),
      written: 0,
      passed: null,
      state: 'growing',
      failure: null,
      followers: new Set(),
      wanted: true,
      stop: new AbortController(),
      waiting: [],
      begun: Promise.resolve(false),
    };
    this.#growing.set(key, answer);
    answer.begun = this.#write(answer, make);
    return answer;
  }

  /** Resolves when the file is there, which grows from then on; false if the answer goes to its followers alone. */
  async #write(answer: Answer, make: Make): Promise<boolean> {
    try {
      const file = await this.#create(answer.path);
      this.#grow(answer, file, make(answer.stop.signal))
        .then(() => this.#end(answer))
        .catch(this.#options.onFault);
      return file !== null;
    } catch (error) {
      this.#forgetGrowing(answer);
      throw error;
    }
  }

  /** Null when the disk has no room for a file, even without the kept answers. */
  async #create(path: string): Promise<FileHandle | null> {
    const attempt = async (): Promise<FileHandle> => {
      await mkdir(this.#options.directory, { recursive: true });
      return open(path, 'wx');
    };
    return this.#withRoom(attempt);
  }

  /** Tries again without the kept answers when the disk is full; null if it still is. */
  async #withRoom<Result>(attempt: () => Promise<Result>): Promise<Result | null> {
    for (const makeRoom of [() => this.makeRoom(), null]) {
      try {
        return await attempt();
      } catch (error) {
        if (!isDiskFull(error)) throw error;
        await makeRoom?.();
      }
    }
    return null;
  }

  /** Writes the answer into its file and wakes its followers. Never rejects. */
  async #grow(answer: Answer, file: FileHandle | null, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const chunk of chunks) {
        const { written } = answer;
        const keeps = answer.passed === null && file !== null;
        const isKept = keeps && (await this.#withRoom(() => writeAt(file, chunk, written)));
        if (isKept === true) answer.written += chunk.length;
        else await this.#pass(answer, chunk);
        wake(answer);
      }
      // Some file systems report only at close that they are full.
      await file?.close();
      answer.state = 'whole';
    } catch (error) {
      answer.state = 'failed';
      answer.failure = error;
      // Followers get the first error.
      await file?.close().catch(() => undefined);
    }
    wake(answer);
  }

  /** Hands the bytes to those who follow now, and waits until each has them: they are kept nowhere. */
  async #pass(answer: Answer, bytes: Uint8Array): Promise<void> {
    answer.wanted = false;
    this.#forgetGrowing(answer);
    const from = answer.passed === null ? answer.written : answer.passed.from + answer.passed.bytes.length;
    answer.passed = { from, bytes };
    wake(answer);
    const end = from + bytes.length;
    while ([...answer.followers].some(({ at }) => at < end)) await woken(answer);
  }

  #end(answer: Answer): void {
    const { key } = answer;
    this.#forgetGrowing(answer);
    if (answer.state === 'whole' && answer.wanted) this.#whole.set(key, answer);
    // The cache refuses an answer that is larger than the whole cache.
    if (this.#whole.peek(key) !== answer) this.#remove(answer);
  }

  #leave(answer: Answer, follower: Follower): void {
    answer.followers.delete(follower);
    if (answer.passed !== null) wake(answer);
    if (answer.followers.size > 0 || answer.state !== 'growing') return;
    // Forget it before any await: otherwise the next caller would follow an answer that is being aborted.
    this.#forgetGrowing(answer);
    answer.stop.abort(new Error('The last follower left'));
  }

  /**
   * Null when the answer has no file. `deleted` when it was deleted, perhaps with the whole cache: then nobody follows
   * this answer any more. A follower that cannot open it counts as left.
   */
  async #open(answer: Answer, follower: Follower): Promise<FileHandle | null | 'deleted'> {
    try {
      return (await answer.begun) ? await open(answer.path, 'r') : null;
    } catch (error) {
      this.#forgetGrowing(answer);
      if (this.#whole.peek(answer.key) === answer) this.#whole.delete(answer.key);
      this.#leave(answer, follower);
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'deleted';
      throw error;
    }
  }

  /** Does nothing when another answer of the same key has begun since. */
  #forgetGrowing(answer: Answer): void {
    if (this.#growing.get(answer.key) === answer) this.#growing.delete(answer.key);
  }

  /** Followers have the file open, so they can still read it to its end. */
  #remove(answer: Answer): void {
    const removed = rm(answer.path, { force: true }).catch(this.#options.onFault);
    this.#removing = Promise.all([this.#removing, removed]);
  }
}

async function writeAt(file: FileHandle, bytes: Uint8Array, position: number): Promise<true> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
  return true;
}

function wake(answer: Answer): void {
  const { waiting } = answer;
  answer.waiting = [];
  for (const resume of waiting) resume();
}

function woken(answer: Answer): Promise<void> {
  return new Promise((resolve) => answer.waiting.push(resolve));
}

async function* readGrowing(
  answer: Answer,
  file: FileHandle | null,
  follower: Follower,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for (;;) {
    signal.throwIfAborted();
    const { passed } = answer;
    if (follower.at < answer.written && file !== null) {
      const chunk = Buffer.allocUnsafe(Math.min(READ_CHUNK_BYTES, answer.written - follower.at));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, follower.at);
      if (bytesRead === 0) throw new Error('The file of a cached answer is shorter than what was written');
      yield chunk.subarray(0, bytesRead);
      follower.at += bytesRead;
    } else if (passed !== null && passed.from === follower.at) {
      yield passed.bytes;
      // Only now does git go on: the slowest follower sets its pace.
      follower.at += passed.bytes.length;
      wake(answer);
    } else if (answer.state === 'growing') {
      await woken(answer);
    } else if (answer.state === 'failed') {
      throw answer.failure;
    } else return;
  }
}
