/**
 * Caches whole answers of git upload-pack on this node's disk: one CI pipeline makes the same clone hundreds of times
 * (docs/git-path.md, Answers are cached whole).
 *
 * Must stay true: an answer is kept only if git ended without an error; a request for an answer that is being made
 * reads the growing file, and fails if git fails; git runs as long as at least one request follows its answer.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';

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
  written: number;
  state: 'growing' | 'whole' | 'failed';
  failure: unknown;
  followers: number;
  /** Whether it may be kept when it is whole. */
  wanted: boolean;
  readonly stop: AbortController;
  waiting: (() => void)[];
  /** Resolves when the file is there: until then nobody else may open it. */
  begun: Promise<void>;
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

  constructor(options: AnswerCacheOptions) {
    this.#options = options;
    this.#whole = new LRUCache({
      maxSize: options.bytesMax,
      sizeCalculation: (answer) => Math.max(1, answer.written),
      dispose: (answer) => this.#remove(answer),
    });
  }

  async *follow(key: string, signal: AbortSignal, make: Make): AsyncGenerator<Uint8Array> {
    const { answer, file } = await this.#join(key, make);
    const stopWaiting = (): void => wake(answer);
    signal.addEventListener('abort', stopWaiting, { once: true });
    try {
      yield* readGrowing(answer, file, signal);
    } finally {
      signal.removeEventListener('abort', stopWaiting);
      this.#leave(answer);
      await file.close();
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

  async #join(key: string, make: Make): Promise<{ readonly answer: Answer; readonly file: FileHandle }> {
    for (let attempt = 1; ; attempt += 1) {
      const known = this.#growing.get(key) ?? this.#whole.get(key) ?? this.#begin(key, make);
      // Count this follower before the first await: otherwise git would be stopped when all the others leave.
      known.followers += 1;
      const file = await this.#open(known);
      if (file !== null) return { answer: known, file };
      if (attempt === OPENINGS_MAX) throw new Error('The file of a cached answer was deleted each time it began');
    }
  }

  /** Synchronous, so that all who want an answer at the same time follow one. */
  #begin(key: string, make: Make): Answer {
    const answer: Answer = {
      key,
      path: join(this.#options.directory, randomUUID()),
      written: 0,
      state: 'growing',
      failure: null,
      followers: 0,
      wanted: true,
      stop: new AbortController(),
      waiting: [],
      begun: Promise.resolve(),
    };
    this.#growing.set(key, answer);
    answer.begun = this.#write(answer, make);
    return answer;
  }

  /** Resolves when the file is there; it grows from then on. */
  async #write(answer: Answer, make: Make): Promise<void> {
    const { directory, onFault } = this.#options;
    try {
      await mkdir(directory, { recursive: true });
      const file = await open(answer.path, 'wx');
      grow(answer, file, make(answer.stop.signal))
        .then(() => this.#end(answer))
        .catch(onFault);
    } catch (error) {
      this.#forgetGrowing(answer);
      throw error;
    }
  }

  #end(answer: Answer): void {
    const { key } = answer;
    this.#forgetGrowing(answer);
    if (answer.state === 'whole' && answer.wanted) this.#whole.set(key, answer);
    // The cache refuses an answer that is larger than the whole cache.
    if (this.#whole.peek(key) !== answer) this.#remove(answer);
  }

  #leave(answer: Answer): void {
    answer.followers -= 1;
    if (answer.followers > 0 || answer.state !== 'growing') return;
    // Forget it before any await: otherwise the next caller would follow an answer that is being aborted.
    this.#forgetGrowing(answer);
    answer.stop.abort(new Error('The last follower left'));
  }

  /**
   * Null when the file was deleted, perhaps with the whole cache: then nobody follows this answer any more. A follower
   * that cannot open it counts as left.
   */
  async #open(answer: Answer): Promise<FileHandle | null> {
    try {
      await answer.begun;
      return await open(answer.path, 'r');
    } catch (error) {
      this.#forgetGrowing(answer);
      if (this.#whole.peek(answer.key) === answer) this.#whole.delete(answer.key);
      this.#leave(answer);
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    }
  }

  /** Does nothing when another answer of the same key has begun since. */
  #forgetGrowing(answer: Answer): void {
    if (this.#growing.get(answer.key) === answer) this.#growing.delete(answer.key);
  }

  /** Followers have the file open, so they can still read it to its end. */
  #remove(answer: Answer): void {
    rm(answer.path, { force: true }).catch(this.#options.onFault);
  }
}

/** Writes the answer into its file and wakes its followers. Never rejects. */
async function grow(answer: Answer, file: FileHandle, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of chunks) {
      await file.writeFile(chunk);
      answer.written += chunk.length;
      wake(answer);
    }
    // Some file systems report only at close that they are full.
    await file.close();
    answer.state = 'whole';
  } catch (error) {
    answer.state = 'failed';
    answer.failure = error;
    // Followers get the first error.
    await file.close().catch(() => undefined);
  }
  wake(answer);
}

function wake(answer: Answer): void {
  const { waiting } = answer;
  answer.waiting = [];
  for (const resume of waiting) resume();
}

async function* readGrowing(answer: Answer, file: FileHandle, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    if (at < answer.written) {
      const chunk = Buffer.allocUnsafe(Math.min(READ_CHUNK_BYTES, answer.written - at));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) throw new Error('The file of a cached answer is shorter than what was written');
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    } else if (answer.state === 'growing') {
      await new Promise<void>((resolve) => answer.waiting.push(resolve));
    } else if (answer.state === 'failed') {
      throw answer.failure;
    } else return;
  }
}
