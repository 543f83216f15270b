/**
 * `strata-admin projections parked` and `projections replay`: streams that a read model could not apply.
 *
 * Invariants: the leader of the model does the replay: a running server, or this command if there is none. The
 * report states the result of the replay, not merely that it was requested.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ParkedStream } from '../../projections/runner/parking.ts';
import type { ProjectionRunner } from '../../projections/runner/runner.ts';
import type { WithProjections } from './command-projections.ts';

/** A long history may take longer. Its replay continues, and `projections parked` shows when it is done. */
const OUTCOME_SPAN_MS = 30_000;
const POLL_INTERVAL_MS = 100;

export interface ParkedReport {
  readonly model: string;
  readonly stream: string;
  /** The first revision that the model has not applied. */
  readonly revision: number;
  readonly events: number;
  readonly attempts: number;
  readonly error: string;
}

export interface ReplayReport {
  /** The streams that the model has applied completely. */
  readonly replayed: readonly { readonly model: string; readonly stream: string }[];
  /** The streams that are still parked, whether or not they were tried again. */
  readonly parked: readonly ParkedReport[];
}

export async function parkedStreams(withProjections: WithProjections): Promise<readonly ParkedReport[]> {
  return withProjections(async ({ runner }) => (await runner.parked()).map(toReport));
}

/** Tries parked streams again: those of one model, those of one stream, or all. */
export function replayParked(
  withProjections: WithProjections,
  chosen: { readonly model: string | null; readonly stream: string | null },
): Promise<ReplayReport> {
  return withProjections(async ({ runner, models }) => {
    if (chosen.model !== null && !models.includes(chosen.model)) {
      throw new Error(`No model is called ${chosen.model}: there are ${models.join(', ')}`);
    }
    const requested = (await runner.parked()).filter(
      ({ projection, stream }) => (chosen.model ?? projection) === projection && (chosen.stream ?? stream) === stream,
    );
    await runner.replay(chosen.stream, chosen.model);
    // Becomes the leader only of models that no other process leads.
    await runner.start({ lead: true, models: requested.map(({ projection }) => projection) });
    const remaining = await outcome(runner, requested);
    const replayed = requested.filter((before) => !remaining.some((now) => isSame(now, before)));
    return {
      replayed: replayed.map(({ projection, stream }) => ({ model: projection, stream })),
      parked: remaining.map(toReport),
    };
  });
}

/** Resolves to the requested streams that are still parked, when each was tried again or after OUTCOME_SPAN_MS. */
async function outcome(
  runner: Pick<ProjectionRunner, 'parked'>,
  requested: readonly ParkedStream[],
): Promise<readonly ParkedStream[]> {
  const giveUpMs = performance.now() + OUTCOME_SPAN_MS;
  for (;;) {
    const parked = await runner.parked();
    const remaining = requested.flatMap((before) => {
      const now = parked.find((stream) => isSame(stream, before));
      return now === undefined ? [] : [{ now, tried: now.attempts > before.attempts }];
    });
    if (remaining.every(({ tried }) => tried) || performance.now() > giveUpMs) return remaining.map(({ now }) => now);
    await sleep(POLL_INTERVAL_MS);
  }
}

function isSame(a: ParkedStream, b: ParkedStream): boolean {
  return a.projection === b.projection && a.stream === b.stream;
}

function toReport({ projection, stream, revision, events, attempts, error }: ParkedStream): ParkedReport {
  return { model: projection, stream, revision, events, attempts, error };
}
