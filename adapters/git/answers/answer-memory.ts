/**
 * Small answers in this process's memory, beside their files: most clones repeat one that was just made, and then the
 * file costs more than the answer.
 *
 * Invariants: bytes count from before they are allocated until nobody reads them any more, also after the answer
 * left, and what counts is never more than the bound, nor that of one account more than half of it. What somebody reads
 * makes no room. All readers share one buffer, which nobody changes once it is filled.
 */
import { type CacheLooks, type CacheSize, showCache } from '../../../core/kernel/shown-caches.ts';

const ACCOUNT_SHARE = 0.5;

export interface AnswerMemoryOptions {
  readonly bytesMax: number;
  readonly answerBytesMax: number;
}

/** The bytes of an answer. They take memory until they are released. */
export interface HeldBytes {
  readonly bytes: Buffer;
  /** Idempotent. */
  release(): void;
}

export interface FilledAnswer {
  readonly key: string;
  readonly account: string;
  readonly sizeBytes: number;
  /** Writes the whole answer into the buffer. */
  readonly read: (into: Buffer) => Promise<void>;
}

export interface AnswerMemory {
  /** Returns an answer that is here; whoever takes it releases it. */
  take(key: string): HeldBytes | null;
  /**
   * Reads an answer in, and returns it to its first reader. Resolves null if it is too large, if there is no room, or
   * if it is here already or being read in.
   */
  fill(answer: FilledAnswer): Promise<HeldBytes | null>;
  /** Nobody finds this answer here any more; who reads it goes on. */
  forget(key: string): void;
  /** Bytes of all answers that are here, or still read after they left. */
  sizeBytes(): number;
}

interface Entry {
  readonly key: string;
  readonly account: string;
  readonly sizeBytes: number;
  /** Null while it is read in. */
  bytes: Buffer | null;
  readers: number;
}

export function createAnswerMemory({ bytesMax, answerBytesMax }: AnswerMemoryOptions): AnswerMemory {
  return new LatestAnswers(bytesMax, answerBytesMax);
}

class LatestAnswers implements AnswerMemory {
  readonly #bytesMax: number;
  readonly #answerBytesMax: number;
  /** The least lately used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #ofAccount = new Map<string, number>();
  readonly #looks: CacheLooks;
  #bytes = 0;

  constructor(bytesMax: number, answerBytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#answerBytesMax = answerBytesMax;
    this.#looks = showCache('git_answers', 'memory', this, LatestAnswers.#sizeOf);
  }

  static #sizeOf(its: LatestAnswers): CacheSize {
    return { taken: its.#bytes, max: its.#bytesMax };
  }

  take(key: string): HeldBytes | null {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.bytes === null) {
      this.#looks.misses += 1;
      return null;
    }
    this.#looks.hits += 1;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    entry.readers += 1;
    return this.#held(entry, entry.bytes);
  }

  async fill({ key, account, sizeBytes, read }: FilledAnswer): Promise<HeldBytes | null> {
    if (sizeBytes > this.#answerBytesMax || this.#entries.has(key) || !this.#freeMemory(account, sizeBytes))
      return null;
    // Who reads it in counts as its reader.
    const entry: Entry = { key, account, sizeBytes, bytes: null, readers: 1 };
    this.#entries.set(key, entry);
    this.#count(entry, sizeBytes);
    try {
      // A buffer of its own: Node's pool would keep far more than a small answer alive.
      const bytes = Buffer.allocUnsafeSlow(sizeBytes);
      await read(bytes);
      entry.bytes = bytes;
      return this.#held(entry, bytes);
    } catch (error) {
      if (this.#isHere(entry)) this.#entries.delete(key);
      this.#leave(entry);
      throw error;
    }
  }

  forget(key: string): void {
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#remove(entry);
  }

  sizeBytes(): number {
    return this.#bytes;
  }

  #held(entry: Entry, bytes: Buffer): HeldBytes {
    let isReleased = false;
    const release = () => {
      if (!isReleased) this.#leave(entry);
      isReleased = true;
    };
    return { bytes, release };
  }

  /** Whether this many bytes fit now, for this account. Its own answers leave first where it has too much. */
  #freeMemory(account: string, bytes: number): boolean {
    const accountBytesMax = this.#bytesMax * ACCOUNT_SHARE;
    const fitsAccount = () => (this.#ofAccount.get(account) ?? 0) + bytes <= accountBytesMax;
    const fits = () => this.#bytes + bytes <= this.#bytesMax;
    return this.#removeUntil(fitsAccount, (entry) => entry.account === account) && this.#removeUntil(fits, () => true);
  }

  #removeUntil(isDone: () => boolean, mayLeave: (entry: Entry) => boolean): boolean {
    for (const entry of this.#entries.values()) {
      if (isDone()) return true;
      if (entry.readers === 0 && mayLeave(entry)) this.#remove(entry);
    }
    return isDone();
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.key);
    if (entry.readers === 0) this.#count(entry, -entry.sizeBytes);
  }

  #leave(entry: Entry): void {
    entry.readers -= 1;
    if (entry.readers === 0 && !this.#isHere(entry)) this.#count(entry, -entry.sizeBytes);
  }

  #isHere(entry: Entry): boolean {
    return this.#entries.get(entry.key) === entry;
  }

  #count({ account }: Entry, bytes: number): void {
    this.#bytes += bytes;
    const sum = (this.#ofAccount.get(account) ?? 0) + bytes;
    if (sum === 0) this.#ofAccount.delete(account);
    else this.#ofAccount.set(account, sum);
  }
}
