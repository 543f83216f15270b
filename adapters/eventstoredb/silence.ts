/**
 * Notices a server that has fallen silent. A frozen one keeps its connections and answers nothing. gRPC's keep-alive
 * would find that after 10 to 20 s, and the client warns on standard output about a shorter interval.
 *
 * Invariants: a server that is only slow is not given up. While a call waits and nothing at all was answered for a
 * time, the server is asked whether it lives; it counts as silent only if that gets no answer either.
 */
export interface SilenceOptions {
  /** How long nothing may be answered before the server is asked. */
  readonly quietMs: number;
  /** When the server last answered, by performance.now(). */
  readonly lastAnswerMs: () => number;
  /** Asks the server whether it lives; resolves false, or rejects, when it did not answer in time. */
  readonly ask: () => Promise<boolean>;
  /** Called once at most. */
  readonly onSilent: () => void;
}

export interface SilenceWatch {
  /** A call begins to wait for its answer. Returns what ends that; idempotent. */
  readonly waits: () => () => void;
  readonly end: () => void;
}

export function watchForSilence({ quietMs, lastAnswerMs, ask, onSilent }: SilenceOptions): SilenceWatch {
  let waiting = 0;
  /** Since when at least one call has waited. */
  let sinceMs = 0;
  let timer: NodeJS.Timeout | null = null;
  let asking = false;
  let ended = false;

  const look = (inMs: number): void => {
    if (timer === null && !asking && !ended && waiting > 0) timer = setTimeout(check, inMs);
  };
  const rest = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  };
  const check = (): void => {
    timer = null;
    const quietForMs = performance.now() - Math.max(sinceMs, lastAnswerMs());
    if (quietForMs < quietMs) {
      look(quietMs - quietForMs);
      return;
    }
    asking = true;
    ask().then(hear, () => hear(false));
  };
  const hear = (answered: boolean): void => {
    asking = false;
    if (answered) look(quietMs);
    else if (!ended) onSilent();
  };

  return {
    waits: () => {
      waiting += 1;
      if (waiting === 1) sinceMs = performance.now();
      look(quietMs);
      let waits = true;
      return () => {
        if (!waits) return;
        waits = false;
        waiting -= 1;
        if (waiting === 0) rest();
      };
    },
    end: () => {
      ended = true;
      rest();
    },
  };
}
