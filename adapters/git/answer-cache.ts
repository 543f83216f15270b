/**
 * Answers of git upload-pack kept whole on this node's disk: one pipeline makes the same clone hundreds of times
 * (git-path, Answers are cached whole).
 *
 * Must stay true: an answer is kept only once git ended well; who asks for one that is being made follows the
 * growing file, and breaks off with it if it fails; git runs on as long as anybody follows, and no longer.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LRUCache } from 'lru-cache';

const READ_CHUNK_BYTES = 1024 * 1024;

export interface AnswerCache {
  /** The answer of that key: kept, being made, or made now. Ending the iteration, or aborting, leaves it. */
  follow(
    key: string,
    signal: AbortSignal,
    make: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  ): AsyncGenerator<Uint8Array>;
}

export interface AnswerCacheOptions {
  /** Emptied at start, and made again when it is deleted. */
  readonly directory: string;
  readonly bytesMax: number;
  readonly onFault: (error: unknown) => void;
}

/** An answer on disk, whole or growing. */
interface Answer {
  readonly path: string;
  written: number;
  state: 'growing' | 'whole' | 'failed';
  failure: unknown;
  followers: number;
  readonly stop: AbortController;
  waiting: (() => void)[];
}

export async function createAnswerCache(options: AnswerCacheOptions): Promise<AnswerCache> {
  const { directory, bytesMax, onFault } = options;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const remove = (answer: Answer): void => {
    // Followers hold the file open: it goes when they are done.
    rm(answer.path, { force: true }).catch(onFault);
  };
  const whole = new LRUCache<string, Answer>({
    maxSize: bytesMax,
    sizeCalculation: (answer) => Math.max(1, answer.written),
    dispose: remove,
  });
  const growing = new Map<string, Answer>();

  const begin = async (key: string, make: (signal: AbortSignal) => AsyncIterable<Uint8Array>): Promise<Answer> => {
    const answer: Answer = {
      path: join(directory, randomUUID()),
      written: 0,
      state: 'growing',
      failure: null,
      followers: 0,
      stop: new AbortController(),
      waiting: [],
    };
    growing.set(key, answer);
    try {
      await mkdir(directory, { recursive: true });
      const file = await open(answer.path, 'wx');
      void grow(answer, file, make(answer.stop.signal)).then(() => {
        growing.delete(key);
        if (answer.state === 'whole') whole.set(key, answer);
        // Also one too large to be kept at all.
        if (whole.peek(key) !== answer) remove(answer);
      });
      return answer;
    } catch (error) {
      growing.delete(key);
      throw error;
    }
  };

  return {
    async *follow(key, signal, make) {
      let answer = growing.get(key) ?? whole.get(key);
      // Counted before anything is awaited, or the one who leaves last would stop git under us.
      if (answer !== undefined) answer.followers += 1;
      let file = answer === undefined ? null : await openThere(answer);
      if (answer === undefined || file === null) {
        if (answer !== undefined) whole.delete(key);
        answer = await begin(key, make);
        answer.followers += 1;
        file = await open(answer.path, 'r');
      }
      const leave = (): void => {
        if (answer !== undefined) wake(answer);
      };
      signal.addEventListener('abort', leave, { once: true });
      try {
        yield* readGrowing(answer, file, signal);
      } finally {
        signal.removeEventListener('abort', leave);
        answer.followers -= 1;
        if (answer.followers === 0 && answer.state === 'growing') answer.stop.abort(new Error('Nobody follows'));
        await file.close();
      }
    },
  };
}

/** Null when somebody deleted the file, with the whole cache perhaps. */
async function openThere(answer: Answer): Promise<FileHandle | null> {
  try {
    return await open(answer.path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

async function grow(answer: Answer, file: FileHandle, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    for await (const chunk of chunks) {
      await file.writeFile(chunk);
      answer.written += chunk.length;
      wake(answer);
    }
    answer.state = 'whole';
  } catch (error) {
    answer.state = 'failed';
    answer.failure = error;
  }
  wake(answer);
  await file.close();
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
      if (bytesRead === 0) throw new Error('A kept answer was cut off');
      at += bytesRead;
      yield chunk.subarray(0, bytesRead);
    } else if (answer.state === 'growing') {
      await new Promise<void>((resolve) => answer.waiting.push(resolve));
    } else if (answer.state === 'failed') {
      throw answer.failure;
    } else return;
  }
}
