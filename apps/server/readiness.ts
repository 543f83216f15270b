/**
 * The content of `/readyz`: whether this node can answer requests, and which of its parts are degraded.
 *
 * Invariants: a part that no answer depends on never makes a node unready; it is reported as degraded instead. The
 * states are from a fixed set, and name no addresses or causes.
 */

/** The health of a part that no answer depends on. The code that runs the part reports it. */
export interface PartHealth {
  /** Reports that the part works. */
  works(): void;
  /** Reports that the part failed and will retry. */
  fails(): void;
  /**
   * Whether it failed lately and has not worked since. A part that another node took over stops failing here.
   */
  isDegraded(): boolean;
}

/** A running part with its health. */
export interface StartedPart {
  readonly health: Pick<PartHealth, 'isDegraded'>;
  stop(): Promise<void>;
}

/** Longer than any pause between two attempts. */
const LATELY_MS = 20_000;
const READY_SPAN_MS = 2_000;

/** `monotonicMs` is a clock that only goes forward; a failure counts for `latelyMs`. */
export function createPartHealth(monotonicMs: () => number, latelyMs = LATELY_MS): PartHealth {
  let failedAtMs: number | null = null;
  return {
    works: () => {
      failedAtMs = null;
    },
    fails: () => {
      failedAtMs = monotonicMs();
    },
    isDegraded: () => failedAtMs !== null && monotonicMs() - failedAtMs < latelyMs,
  };
}

export interface Readiness {
  readonly ready: boolean;
  /** `ok`, `unavailable` or `no answer` for parts that answers depend on; `ok` or `degraded` for the others. */
  readonly parts: Readonly<Record<string, string>>;
}

/** Reports the checks of `needed` and the `healths`. A check that takes longer than READY_SPAN_MS counts as down. */
export async function readiness(
  needed: Readonly<Record<string, Promise<unknown>>>,
  healths: Readonly<Record<string, Pick<PartHealth, 'isDegraded'>>>,
): Promise<Readiness> {
  const states = await Promise.all(
    Object.entries(needed).map(async ([name, check]) => [name, await stateOf(check)] as const),
  );
  const others = Object.entries(healths).map(
    ([name, health]) => [name, health.isDegraded() ? 'degraded' : 'ok'] as const,
  );
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
