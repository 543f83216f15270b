/**
 * The command line of `npm run bench`.
 *
 * Invariants: an unknown option or value ends the run with the list of valid ones; nothing is guessed.
 */
import { parseArgs } from 'node:util';
import { SCALE_PARTS } from './scale/parts.ts';

export interface BenchOptions {
  /** Scenario names; null: all. */
  readonly only: readonly string[] | null;
  readonly seconds: number;
  readonly rounds: number;
  /** In the order to measure in; null: each line with its own number. */
  readonly clients: readonly number[] | null;
  /** For the scenarios `growth` and `scale`; null: their own numbers, as for the others below. */
  readonly pushes: number | null;
  /** For the scenarios `ref-count` and `scale`. */
  readonly refs: number | null;
  /** For the scenario `scale`. */
  readonly repositories: number | null;
  readonly nodes: number | null;
  /** The chosen parts of it; null: all. */
  readonly parts: readonly string[] | null;
  /** For the scenario `audit`. */
  readonly entries: number | null;
  /** Path of a git bundle; null: a generated repository. */
  readonly bundle: string | null;
  readonly json: boolean;
  readonly sides: 'both' | 'http-backend' | 'strata';
  /** Compares http-backend with itself: the ratios must be about 1. */
  readonly selfCheck: boolean;
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const SCALE_PART_NAMES: readonly string[] = SCALE_PARTS.map(({ name }) => name);
const SECONDS_MAX = 600;
const ROUNDS_MAX = 50;
const CLIENTS_MAX = 256;
const PUSHES_MAX = 1_000_000;
const REFS_MAX = 500_000;
const REPOSITORIES_MAX = 100_000;
const NODES_MAX = 16;
const ENTRIES_MAX = 10_000_000;

export function usageText(scenarios: readonly { readonly name: string; readonly title: string }[]): string {
  return [
    'npm run bench -- [SCENARIO...] [options]',
    '',
    '  SCENARIO...                run only these; --only NAME[,NAME...] says the same',
    '  --seconds N                length of one round of one side (default 4)',
    '  --rounds N                 rounds, in turn, of each side (default 3)',
    '  --clients N[,N...]         numbers of clients for each line (default: what its goal names)',
    '  --pushes N                 pushes of the scenarios growth and scale (default 100,000)',
    '  --refs N                   refs of the scenarios ref-count (default 200,000) and scale (default 100,000)',
    '  --repositories N           repositories of an account in the scenario scale (default 10,000)',
    '  --nodes N                  nodes in the scenario scale (default 3)',
    `  --parts PART[,PART...]     parts of the scenario scale: ${SCALE_PART_NAMES.join(', ')}`,
    '  --entries N                entries of the log of the scenario audit (default 10,000, then 100,000)',
    '  --repository PATH          git bundle to measure on (default: STRATA_REAL_REPOSITORY, else generated)',
    '  --side http-backend|strata measure one side alone',
    '  --self-check               http-backend against itself; ratios must be about 1',
    '  --json                     print one JSON value instead of the table',
    '',
    'Scenarios:',
    ...scenarios.map(({ name, title }) => `  ${name.padEnd(26)} ${title}`),
    '',
  ].join('\n');
}

export function readOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  scenarioNames: readonly string[],
): BenchOptions {
  const { values, positionals } = parse(args);
  const named = [...positionals, ...(values.only?.split(',') ?? [])].filter((name) => name !== '');
  const only = named.length === 0 ? null : named;
  const unknown = only?.find((name) => !scenarioNames.includes(name));
  if (unknown !== undefined) throw new UsageError(`There is no scenario ${unknown}`);
  const sides = values.side ?? 'both';
  if (sides !== 'both' && sides !== 'http-backend' && sides !== 'strata')
    throw new UsageError(`There is no side ${sides}`);
  if (values['self-check'] === true && sides !== 'both') throw new UsageError('--self-check names its sides itself');
  const fromEnvironment = environment['STRATA_REAL_REPOSITORY'];
  return {
    only,
    seconds: numberOf('--seconds', values.seconds ?? '4', SECONDS_MAX),
    rounds: numberOf('--rounds', values.rounds ?? '3', ROUNDS_MAX),
    clients: values.clients === undefined ? null : clientCounts(values.clients),
    pushes: sizeOf('--pushes', values.pushes, PUSHES_MAX),
    refs: sizeOf('--refs', values.refs, REFS_MAX),
    repositories: sizeOf('--repositories', values.repositories, REPOSITORIES_MAX),
    nodes: sizeOf('--nodes', values.nodes, NODES_MAX),
    parts: values.parts === undefined ? null : partsIn(values.parts),
    entries: sizeOf('--entries', values.entries, ENTRIES_MAX),
    bundle: values.repository ?? (fromEnvironment === '' ? undefined : fromEnvironment) ?? null,
    json: values.json ?? false,
    sides,
    selfCheck: values['self-check'] ?? false,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      strict: true,
      allowPositionals: true,
      options: {
        only: { type: 'string' },
        seconds: { type: 'string' },
        rounds: { type: 'string' },
        clients: { type: 'string' },
        pushes: { type: 'string' },
        refs: { type: 'string' },
        repositories: { type: 'string' },
        nodes: { type: 'string' },
        parts: { type: 'string' },
        entries: { type: 'string' },
        repository: { type: 'string' },
        side: { type: 'string' },
        json: { type: 'boolean' },
        'self-check': { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function clientCounts(text: string): readonly number[] {
  const counts = text.split(',').map((each) => numberOf('--clients', each, CLIENTS_MAX));
  if (!counts.every(Number.isInteger)) throw new UsageError('--clients takes whole numbers');
  return [...new Set(counts)];
}

function partsIn(text: string): readonly string[] {
  const parts = text.split(',');
  const unknown = parts.find((part) => !SCALE_PART_NAMES.includes(part));
  if (unknown !== undefined) throw new UsageError(`The scenario scale has no part ${unknown}`);
  return parts;
}

function sizeOf(name: string, text: string | undefined, max: number): number | null {
  return text === undefined ? null : Math.ceil(numberOf(name, text, max));
}

function numberOf(name: string, text: string, max: number): number {
  const value = Number(text);
  if (!(value > 0 && value <= max)) throw new UsageError(`${name} takes a number above 0, up to ${max}`);
  return value;
}
