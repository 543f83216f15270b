/**
 * What `/readyz` says: whether this node can answer, and which part of it does less than it should.
 *
 * Must stay true: a part that no answer rests on never makes a node unready; it is named as degraded instead. Words
 * are from a fixed set, and say nothing of addresses or causes.
 */

/** A part that no answer rests on, told of by whoever runs it. */
export interface Duty {
  /** It does what it is for. */
  works(): void;
  /** It cannot now; it tries again by itself. */
  fails(): void;
  /** Whether it failed lately and has not worked since. Where another node took over, nothing fails here any more. */
  isDegraded(): boolean;
}

/** Such a part, running. */
export interface StartedPart {
  readonly duty: Pick<Duty, 'isDegraded'>;
  stop(): Promise<void>;
}

/** Longer than any pause between two tries. */
const LATELY_MS = 20_000;
const READY_SPAN_MS = 2_000;

/** `monotonicMs` is a clock that only goes forward. */
export function createDuty(monotonicMs: () => number): Duty {
  let failedAtMs: number | null = null;
  return {
    works: () => {
      failedAtMs = null;
    },
    fails: () => {
      failedAtMs = monotonicMs();
    },
    isDegraded: () => failedAtMs !== null && monotonicMs() - failedAtMs < LATELY_MS,
  };
}

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, `unavailable` or `no answer` of what answers rest on; `ok` or `degraded` of the others. */
  readonly parts: Readonly<Record<string, string>>;
}

/** One of `needed` that does not answer in time counts as down. */
export async function readiness(
  needed: Readonly<Record<string, Promise<unknown>>>,
  duties: Readonly<Record<string, Pick<Duty, 'isDegraded'>>>,
): Promise<Readiness> {
  const states = await Promise.all(
    Object.entries(needed).map(async ([name, check]) => [name, await stateOf(check)] as const),
  );
  const others = Object.entries(duties).map(([name, duty]) => [name, duty.isDegraded() ? 'degraded' : 'ok'] as const);
  return { ready: states.every(([, state]) => state === 'ok'), parts: Object.fromEntries([...states, ...others]) };
}

async function stateOf(check: Promise<unknown>): Promise<'ok' | 'unavailable' | 'no answer'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'no answer'>((resolve) => {
    timer = setTimeout(() => resolve('no answer'), READY_SPAN_MS);
  });
  const answer = check.then(
    () => 'ok' as const,
    () => 'unavailable' as const,
  );
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
