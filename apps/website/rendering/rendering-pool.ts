/**
 * Threads that render: what may take long or never end happens beside the event loop, which serves Git and the API.
 *
 * Invariants: a job past its time ends its thread, so no text can hold one for longer. Few jobs wait, and people take
 * turns: nobody's texts hold up those of others for longer than the jobs that run already. A job that is refused or
 * fails is no error, since every page shows its text without it.
 */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { KIB } from '../../../core/kernel/byte-units.ts';
import { createFairSlots } from '../../../core/kernel/fair-slots.ts';
import type { Rendered, RenderingJob, ThreadMessage } from './rendering-job.ts';

/**
 * The time to render one text; then its thread is ended and the page shows the text plain. Markdown has it again for
 * each further quarter of a MiB.
 */
export const RENDERING_SPAN_MS = 1_500;
/** The time that a text waits for its turn to be rendered. */
export const RENDERING_WAIT_MS = 1_500;
/**
 * Texts rendered at the same time on a node; one person has all but one of these threads at most. Internal: further
 * texts wait.
 */
const RENDERING_THREADS_MAX = 2;
/** Texts that wait to be rendered: of one person, and in all. */
export const RENDERINGS_OF_PERSON_MAX = 8;
export const RENDERINGS_WAITING_MAX = 64;

export type RenderingFailure =
  /** Too many jobs wait, of this person or in all. */
  | 'busy'
  | 'took-too-long'
  /** The library threw, or the thread ran out of memory. */
  | 'broke';

export type RenderingOutcome = { readonly rendered: Rendered } | { readonly failed: RenderingFailure };

export interface RenderingPool {
  /** Never rejects. */
  run(person: string, job: RenderingJob): Promise<RenderingOutcome>;
  /** Ends every thread, and with it the jobs that run. */
  close(): Promise<void>;
}

export interface RenderingPoolOptions {
  readonly threads?: number;
  readonly spanMs?: number;
  readonly waitMs?: number;
  /** The program of a thread; tests run others. */
  readonly program?: URL;
}

/** The libraries take about a third of a second to load; on a machine under load much longer. */
const START_SPAN_MS = 10_000;
const MARKDOWN_LENGTH_OF_SPAN = 256 * KIB;
const THREAD_LIMITS: ResourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16, stackSizeMb: 2 };

export function createRenderingPool(options: RenderingPoolOptions = {}): RenderingPool {
  const { threads = RENDERING_THREADS_MAX, spanMs = RENDERING_SPAN_MS, waitMs = RENDERING_WAIT_MS } = options;
  const program = options.program ?? new URL('./rendering-thread.ts', import.meta.url);
  const slots = createFairSlots({ slots: threads, slotsPerKey: Math.max(1, threads - 1) });
  const idle: Thread[] = [];
  const all = new Set<Thread>();
  const waiting = new Map<string, number>();
  let waitingInAll = 0;
  let isClosed = false;

  const takeTurn = async (person: string): Promise<(() => void) | null> => {
    const own = waiting.get(person) ?? 0;
    if (isClosed || waitingInAll >= RENDERINGS_WAITING_MAX || own >= RENDERINGS_OF_PERSON_MAX) return null;
    waitingInAll += 1;
    waiting.set(person, own + 1);
    try {
      return await slots.acquire(person, AbortSignal.timeout(waitMs));
    } catch {
      return null;
    } finally {
      waitingInAll -= 1;
      const left = (waiting.get(person) ?? 1) - 1;
      if (left === 0) waiting.delete(person);
      else waiting.set(person, left);
    }
  };
  const threadOf = (): Thread => {
    const thread = idle.pop() ?? startThread(program);
    all.add(thread);
    return thread;
  };
  return {
    async run(person, job) {
      const release = await takeTurn(person);
      if (release === null) return { failed: 'busy' };
      try {
        const thread = threadOf();
        const outcome = await thread.run(job, spanMs * spansOf(job));
        // A thread that has answered is sound, even if the library threw. Any other may be stuck.
        if (thread.isSound() && !isClosed) idle.push(thread);
        else {
          all.delete(thread);
          await thread.end();
        }
        return outcome;
      } finally {
        release();
      }
    },
    async close() {
      isClosed = true;
      await Promise.all([...all].map((thread) => thread.end()));
    },
  };
}

function spansOf(job: RenderingJob): number {
  return job.kind === 'markdown' ? Math.max(1, Math.ceil(job.text.length / MARKDOWN_LENGTH_OF_SPAN)) : 1;
}

interface Thread {
  run(job: RenderingJob, spanMs: number): Promise<RenderingOutcome>;
  /** Whether the thread waits for its next job. */
  isSound(): boolean;
  end(): Promise<void>;
}

function startThread(program: URL): Thread {
  // No environment: it may hold the master key and the database's password.
  const worker = new Worker(program, { name: 'rendering', env: {}, resourceLimits: THREAD_LIMITS });
  worker.unref();
  let isSound = true;
  // Set before the first job, so that no message is missed.
  let onMessage: (message: ThreadMessage) => void = () => undefined;
  let onEnd: () => void = () => undefined;
  const ready = new Promise<boolean>((resolve) => {
    onMessage = () => resolve(true);
    onEnd = () => resolve(false);
  });
  const died = (): void => {
    isSound = false;
    onEnd();
  };
  worker
    .on('message', (message: ThreadMessage) => onMessage(message))
    .on('error', died)
    .on('exit', died);

  const answerTo = (job: RenderingJob): Promise<RenderingOutcome> =>
    new Promise((resolve) => {
      onEnd = () => resolve({ failed: 'broke' });
      onMessage = (message) => resolve('rendered' in message ? message : { failed: 'broke' });
      if (isSound) worker.postMessage(job);
      else onEnd();
    });
  return {
    async run(job, spanMs) {
      const isReady = await within(ready, START_SPAN_MS);
      if (isReady !== true) isSound = false;
      if (!isSound) return { failed: 'broke' };
      const outcome = await within(answerTo(job), spanMs);
      if (outcome === 'late') isSound = false;
      return outcome === 'late' ? { failed: 'took-too-long' } : outcome;
    },
    isSound: () => isSound,
    async end() {
      isSound = false;
      await worker.terminate();
    },
  };
}

async function within<Value>(work: Promise<Value>, spanMs: number): Promise<Value | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), spanMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
