/**
 * Caches whole answers of git upload-pack on this node's disk: one CI pipeline makes the same clone hundreds of times
 * (docs/git-path.md, Answers are cached whole).
 *
 * Invariants: an answer is kept only if git ended without an error; a request for an answer that is being made reads
 * the growing file, and fails if git fails; git runs as long as at least one request follows its answer. All files
 * together, those that somebody still reads after they left the cache included, take no more than the bound: kept
 * answers make room, and what finds none goes from git to its followers at the pace of the slowest. Their number is
 * bounded too, since each takes memory, however small it is. What is in memory is one of the whole answers, and leaves
 * with it.
 */
import type { FileHandle } from 'node:fs/promises';
import { mkdir, rm } from 'node:fs/promises';
import { type CacheLooks, type CacheSize, showCache } from '../../../core/kernel/shown-caches.ts';
import { type AnswerDiskBudget, createAnswerDiskBudget } from './answer-disk-budget.ts';
import { type AnswerFiles, createAnswerFiles, piecesOf, readAll } from './answer-files.ts';
import { type AnswerMemory, createAnswerMemory, type HeldBytes } from './answer-memory.ts';
import { type Follower, GrowingAnswer, type MakeAnswer } from './growing-answer.ts';
import { type QueuedBytes, spooled } from './spooled-answer.ts';

/** Kept answers, of some three KiB of memory each. Internal: what is not kept is made again. */
const ANSWERS_KEPT_MAX = 10_000;
/** The bytes of all answers that are in memory, and of each. Internal: what is not in memory is read from its file. */
const MEMORY_BYTES_MAX = 64 * 1024 * 1024;
const IN_MEMORY_BYTES_MAX = 8 * 1024 * 1024;
/**
 * How often a request looks for the file of its answer while somebody deletes the cache. Internal: only an operator who
 * deletes the cache reaches it.
 */
const OPENINGS_MAX = 3;

export interface WantedAnswer {
  /** Whose disk it takes while it is made. */
  readonly account: string;
  /** The request stops following when its iteration ends or its signal aborts. */
  readonly signal: AbortSignal;
  readonly make: MakeAnswer;
}

/** Bytes on disk, in memory, and since the start. */
export interface AnswerFigures {
  readonly keptBytes: number;
  readonly growingBytes: number;
  readonly memoryBytes: number;
  readonly madeBytes: number;
  readonly evictedBytes: number;
}

export interface AnswerCache {
  /**
   * Yields the answer of this key: from the cache, from an earlier request that is still making it, or made now.
   */
  follow(wanted: WantedAnswer & { readonly key: string }): AsyncGenerator<Uint8Array>;
  /** Returns the answer of this key if it is in memory, as small ones are from their second request on. */
  held(key: string): HeldBytes | null;
  /** Yields an answer for one reader, who may be slow: git does not wait while there is room. */
  spool(wanted: WantedAnswer): AsyncGenerator<Uint8Array>;
  /** Keeps no answer of the keys that begin with this text; who follows one reads it to its end. */
  drop(keyStart: string): void;
  /** Returns the keys of all answers, growing ones included. */
  keys(): readonly string[];
  /** Removes all whole answers; resolves when their files are gone. */
  freeDisk(): Promise<void>;
  figures(): AnswerFigures;
}

export interface AnswerCacheOptions {
  /** Emptied at start; created again when it is deleted. */
  readonly directory: string;
  readonly bytesMax: number;
  readonly answersMax?: number;
  readonly memory?: AnswerMemory;
  readonly onFault: (error: unknown) => void;
}

/** Starts with an empty directory: files of an earlier process may be incomplete. */
export async function createAnswerCache(options: AnswerCacheOptions): Promise<AnswerCache> {
  await rm(options.directory, { recursive: true, force: true });
  await mkdir(options.directory, { recursive: true });
  return new KeptAnswers(options);
}

class KeptAnswers implements AnswerCache {
  readonly #onFault: (error: unknown) => void;
  readonly #files: AnswerFiles;
  readonly #diskBudget: AnswerDiskBudget;
  readonly #bytesMax: number;
  readonly #answersMax: number;
  readonly #memory: AnswerMemory;
  /** The least lately used first. */
  readonly #whole = new Map<string, GrowingAnswer>();
  readonly #growing = new Map<string, GrowingAnswer>();
  readonly #queued: QueuedBytes = { bytes: 0 };
  readonly #looks: CacheLooks;
  #removing: Promise<unknown> = Promise.resolve();
  #madeBytes = 0;
  #evictedBytes = 0;

  constructor({ directory, bytesMax, answersMax = ANSWERS_KEPT_MAX, memory, onFault }: AnswerCacheOptions) {
    this.#onFault = onFault;
    this.#bytesMax = bytesMax;
    this.#answersMax = answersMax;
    this.#memory = memory ?? createAnswerMemory({ bytesMax: MEMORY_BYTES_MAX, answerBytesMax: IN_MEMORY_BYTES_MAX });
    this.#files = createAnswerFiles({ directory, freeDisk: () => this.freeDisk() });
    this.#diskBudget = createAnswerDiskBudget({ bytesMax, removeOne: () => this.#removeOne() });
    this.#looks = showCache('git_answer_files', 'disk', this, KeptAnswers.#sizeOf);
  }

  static #sizeOf(its: KeptAnswers): CacheSize {
    return { taken: its.figures().keptBytes, max: its.#bytesMax };
  }

  async *follow(wanted: WantedAnswer & { readonly key: string }): AsyncGenerator<Uint8Array> {
    const { answer, follower, file, wasWhole } = await this.#join(wanted);
    const { account, signal } = wanted;
    const stopWaiting = (): void => answer.wake();
    signal.addEventListener('abort', stopWaiting, { once: true });
    try {
      const held = wasWhole && file !== null ? await this.#remember(answer, file, account) : null;
      if (held === null) yield* answer.read(follower, file, signal);
      else yield* readHeld(held);
    } finally {
      signal.removeEventListener('abort', stopWaiting);
      this.#leave(answer, follower);
    }
  }

  held(key: string): HeldBytes | null {
    const held = this.#memory.take(key);
    if (held !== null) this.#used(key);
    return held;
  }

  spool({ account, signal, make }: WantedAnswer): AsyncGenerator<Uint8Array> {
    const reservation = this.#diskBudget.open(account);
    return spooled({ files: this.#files, reservation, queued: this.#queued, onMade: this.#noteMade }, make, signal);
  }

  drop(keyStart: string): void {
    for (const [key, answer] of this.#whole) if (key.startsWith(keyStart)) this.#forgetWhole(answer);
    // Without its place it is not kept when it is whole.
    for (const [key, answer] of this.#growing) if (key.startsWith(keyStart)) this.#forgetGrowing(answer);
  }

  keys(): readonly string[] {
    return [...this.#whole.keys(), ...this.#growing.keys()];
  }

  async freeDisk(): Promise<void> {
    for (const answer of this.#whole.values()) this.#evict(answer);
    await this.#removing;
  }

  figures(): AnswerFigures {
    const { keptBytes, growingBytes } = this.#diskBudget.reserved();
    const memoryBytes = this.#memory.sizeBytes();
    return { keptBytes, growingBytes, memoryBytes, madeBytes: this.#madeBytes, evictedBytes: this.#evictedBytes };
  }

  readonly #noteMade = (bytes: number): void => {
    this.#madeBytes += bytes;
  };

  async #join(wanted: WantedAnswer & { readonly key: string }): Promise<{
    readonly answer: GrowingAnswer;
    readonly follower: Follower;
    readonly file: FileHandle | null;
    /** Whether an earlier request made it. */
    readonly wasWhole: boolean;
  }> {
    const { key } = wanted;
    if (this.#growing.has(key) || this.#whole.has(key)) this.#looks.hits += 1;
    else this.#looks.misses += 1;
    for (let attempt = 1; ; attempt += 1) {
      const answer = this.#growing.get(key) ?? this.#used(key) ?? this.#begin(wanted);
      // Count this follower before the first await: otherwise git would be stopped when all the others leave.
      const follower = answer.join();
      const wasWhole = answer.state === 'whole';
      const file = await this.#open(answer, follower);
      if (file !== 'deleted') return { answer, follower, file, wasWhole };
      if (attempt === OPENINGS_MAX) throw new Error('The file of a cached answer was deleted each time it began');
    }
  }

  /** Resolves null if it is not to be in memory; else the file is closed. */
  async #remember(answer: GrowingAnswer, file: FileHandle, account: string): Promise<HeldBytes | null> {
    const { key, written: sizeBytes } = answer;
    // It may have left since it was found: then nothing would take it out of memory.
    if (this.#whole.get(key) !== answer) return null;
    let held: HeldBytes | null = null;
    try {
      held = await this.#memory.fill({ key, account, sizeBytes, read: (into) => readAll(file, into) });
      if (held !== null) await answer.close(file);
      return held;
    } catch (error) {
      if (held === null) await answer.close(file);
      held?.release();
      throw error;
    }
  }

  #used(key: string): GrowingAnswer | undefined {
    const answer = this.#whole.get(key);
    if (answer === undefined) return undefined;
    this.#whole.delete(key);
    this.#whole.set(key, answer);
    return answer;
  }

  /** Synchronous, so that all who want an answer at the same time follow one. */
  #begin({ key, account, make }: WantedAnswer & { readonly key: string }): GrowingAnswer {
    const answer = new GrowingAnswer({
      key,
      files: this.#files,
      reservation: this.#diskBudget.open(account),
      onPassed: () => this.#forgetGrowing(answer),
      onMade: this.#noteMade,
      onFault: this.#onFault,
    });
    this.#growing.set(key, answer);
    answer.begin(make, () => this.#end(answer));
    return answer;
  }

  #end(answer: GrowingAnswer): void {
    const isWanted = this.#forgetGrowing(answer);
    if (answer.state === 'whole' && isWanted) {
      answer.reservation.keep(answer.written);
      this.#whole.set(answer.key, answer);
      const [oldest] = this.#whole.values();
      if (oldest !== undefined && this.#whole.size > this.#answersMax) this.#evict(oldest);
    } else this.#remove(answer);
  }

  #leave(answer: GrowingAnswer, follower: Follower): void {
    // Forget it before any await: otherwise the next caller would follow an answer that is being aborted.
    if (!answer.leave(follower)) this.#forgetGrowing(answer);
  }

  /**
   * Null when the answer has no file. `deleted` when it was deleted, perhaps with the whole cache: then nobody follows
   * this answer any more. A follower that cannot open it counts as left.
   */
  async #open(answer: GrowingAnswer, follower: Follower): Promise<FileHandle | null | 'deleted'> {
    try {
      return await answer.openToRead();
    } catch (error) {
      this.#forgetGrowing(answer);
      if (this.#whole.get(answer.key) === answer) this.#forgetWhole(answer);
      this.#leave(answer, follower);
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'deleted';
      throw error;
    }
  }

  /** Returns whether it had its place; another answer of the same key may have begun since. */
  #forgetGrowing(answer: GrowingAnswer): boolean {
    return this.#growing.get(answer.key) === answer && this.#growing.delete(answer.key);
  }

  #forgetWhole(answer: GrowingAnswer): void {
    this.#whole.delete(answer.key);
    this.#memory.forget(answer.key);
    this.#remove(answer);
  }

  #evict(answer: GrowingAnswer): void {
    this.#evictedBytes += answer.written;
    this.#forgetWhole(answer);
  }

  /** One that is read gives its bytes back only afterwards. */
  async #removeOne(): Promise<boolean> {
    for (const answer of this.#whole.values()) {
      if (answer.isFollowed) continue;
      this.#evict(answer);
      await answer.remove();
      return true;
    }
    return false;
  }

  #remove(answer: GrowingAnswer): void {
    this.#removing = Promise.all([this.#removing, answer.remove()]);
  }
}

async function* readHeld({ bytes, release }: HeldBytes): AsyncGenerator<Uint8Array> {
  try {
    yield* piecesOf(bytes);
  } finally {
    release();
  }
}
