/**
 * The command line of `npm run soak`.
 *
 * Invariants: an unknown option or value ends the run with the list of valid ones; nothing is guessed.
 */
import { parseArgs } from 'node:util';

export interface SoakOptions {
  readonly minutes: number;
  /** Decides what the clients do, and in which order they begin it. */
  readonly seed: number;
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const MINUTES_MAX = 24 * 60;
const SEED_MAX = 2 ** 32 - 1;

export const USAGE = [
  'npm run soak -- --minutes N [--seed N]',
  '',
  `  --minutes N   how long clients work, from 1 to ${MINUTES_MAX} (default 10)`,
  '  --seed N      repeats the choices of a run, which prints its seed',
  '',
].join('\n');

export function readOptions(args: readonly string[], randomSeed: () => number): SoakOptions {
  const { values } = parse(args);
  return {
    minutes: numberOf('--minutes', values.minutes ?? '10', { least: 1, most: MINUTES_MAX }),
    seed: Math.floor(numberOf('--seed', values.seed ?? String(randomSeed()), { least: 0, most: SEED_MAX })),
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: { minutes: { type: 'string' }, seed: { type: 'string' } } });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function numberOf(name: string, text: string, { least, most }: { readonly least: number; readonly most: number }) {
  const value = Number(text);
  if (text.trim() === '' || !(value >= least && value <= most)) {
    throw new UsageError(`${name} must be a number from ${least} to ${most}, not ${JSON.stringify(text)}`);
  }
  return value;
}
