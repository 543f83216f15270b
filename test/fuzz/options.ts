/**
 * The command line of `npm run fuzz` and `npm run differential`.
 *
 * Invariants: an unknown option or value ends the run with the list of valid ones.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';

export interface FuzzOptions {
  /** The run ends with the first of both; null: no such bound. */
  readonly seconds: number | null;
  readonly inputs: number | null;
  readonly seed: number;
  /** Sends this one input of the seed alone, and prints what it is and what happened. */
  readonly replay: number | null;
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

type Program = 'fuzz' | 'differential';

/** Returns the options of this process; explains them and returns null if they are wrong. */
export function optionsOrExplain(program: Program, say: (text: string) => void): FuzzOptions | null {
  try {
    return readOptions(process.argv.slice(2), () => randomInt(2 ** 32));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    say(`${error.message}\n\n${usageOf(program)}`);
    return null;
  }
}

const usageOf = (program: Program): string =>
  [
    `npm run ${program} -- [options]`,
    '',
    '  --seconds N        how long inputs are sent (default 60, without --inputs)',
    '  --inputs N         how many are sent at most',
    '  --seed N           decides the inputs (default: a new one, which is printed)',
    '  --replay S:N       sends input N of seed S alone, and prints it',
    '',
  ].join('\n');

const SECONDS_MAX = 24 * 3_600;
const INPUTS_MAX = 1_000_000_000;
const SEED_MAX = 2 ** 32 - 1;

export function readOptions(args: readonly string[], newSeed: () => number): FuzzOptions {
  const { seconds, inputs, seed, replay } = parse(args);
  const [replayedSeed, index, ...more] = replay?.split(':') ?? [];
  if (replay !== undefined && (index === undefined || more.length > 0)) {
    throw new UsageError('--replay takes the seed and the index of an input: 7:1234');
  }
  if (replay !== undefined && [seconds, inputs, seed].some((value) => value !== undefined)) {
    throw new UsageError('--replay sends one input, and takes no other option');
  }
  const bound = (name: string, text: string | undefined, max: number): number | null =>
    text === undefined ? null : wholeNumber(name, text, max);
  const inputsMax = bound('--inputs', inputs, INPUTS_MAX);
  return {
    seconds: bound('--seconds', seconds, SECONDS_MAX) ?? (inputsMax === null ? 60 : null),
    inputs: inputsMax,
    seed: bound('--seed', seed ?? replayedSeed, SEED_MAX) ?? newSeed(),
    replay: bound('--replay', index, INPUTS_MAX),
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  try {
    return parseArgs({ args: [...args], options: { seconds: text, inputs: text, seed: text, replay: text } }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > max)
    throw new UsageError(`${name} takes a whole number up to ${max}, not ${text}`);
  return value;
}
