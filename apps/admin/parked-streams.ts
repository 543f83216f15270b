/**
 * `strata-admin projections parked` and `projections replay`: streams that a read model could not apply.
 *
 * Must stay true: a replay is done by whoever leads the model, a running server or, without one, this command; what
 * is told of it is what became of it, not that it was asked for.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ParkedStream } from '../../projections/runner/parking.ts';
import type { ProjectionRunner } from '../../projections/runner/runner.ts';
import type { WithProjections } from './command-projections.ts';

/** A long history may take longer; it goes on, and `parked` shows when it is done. */
const OUTCOME_SPAN_MS = 30_000;
const LOOK_INTERVAL_MS = 100;

export interface ParkedReport {
  readonly model: string;
  readonly stream: string;
  /** The first revision that is not applied. */
  readonly revision: number;
  readonly events: number;
  readonly attempts: number;
  readonly error: string;
}

export interface ReplayReport {
  /** Applied whole. */
  readonly replayed: readonly { readonly model: string; readonly stream: string }[];
  /** Tried, or not tried yet, and still parked. */
  readonly parked: readonly ParkedReport[];
}

export async function parkedStreams(withProjections: WithProjections): Promise<readonly ParkedReport[]> {
  return withProjections(async ({ runner }) => (await runner.parked()).map(toReport));
}

/** Tries parked streams again: all, or those of a model, or one of that name. */
export function replayParked(
  withProjections: WithProjections,
  chosen: { readonly model: string | null; readonly stream: string | null },
): Promise<ReplayReport> {
  return withProjections(async ({ runner, models }) => {
    if (chosen.model !== null && !models.includes(chosen.model)) {
      throw new Error(`No model is called ${chosen.model}: there are ${models.join(', ')}`);
    }
    const asked = (await runner.parked()).filter(
      ({ projection, stream }) => (chosen.model ?? projection) === projection && (chosen.stream ?? stream) === stream,
    );
    await runner.replay(chosen.stream, chosen.model);
    // Leads only what nobody else does.
    await runner.start();
    const left = await outcome(runner, asked);
    const replayed = asked.filter((before) => !left.some((now) => isSame(now, before)));
    return {
      replayed: replayed.map(({ projection, stream }) => ({ model: projection, stream })),
      parked: left.map(toReport),
    };
  });
}

/** What is still parked of what was asked for, once each was tried or the time is over. */
async function outcome(
  runner: Pick<ProjectionRunner, 'parked'>,
  asked: readonly ParkedStream[],
): Promise<readonly ParkedStream[]> {
  const giveUpMs = performance.now() + OUTCOME_SPAN_MS;
  for (;;) {
    const parked = await runner.parked();
    const left = asked.flatMap((before) => {
      const now = parked.find((stream) => isSame(stream, before));
      return now === undefined ? [] : [{ now, tried: now.attempts > before.attempts }];
    });
    if (left.every(({ tried }) => tried) || performance.now() > giveUpMs) return left.map(({ now }) => now);
    await sleep(LOOK_INTERVAL_MS);
  }
}

function isSame(a: ParkedStream, b: ParkedStream): boolean {
  return a.projection === b.projection && a.stream === b.stream;
}

function toReport({ projection, stream, revision, events, attempts, error }: ParkedStream): ParkedReport {
  return { model: projection, stream, revision, events, attempts, error };
}
