/**
 * Measures how long the command line takes, bundled as it is packed, beside a Node that does nothing.
 *
 * Invariants: the programs run in turn, so that other load meets all of them. Everything runs on the loopback
 * interface; whatever happens, the bench ends the server that it started.
 */
import { spawnSync } from 'node:child_process';
import os from 'node:os';
import type { Ending } from '../support/cleanup.ts';
import { bundledCommand, oldestNode } from '../support/command-line.ts';
import { api, createAccount, startStrata } from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';
import { describeMachine } from './environment.ts';
import { median } from './statistics.ts';
import { formatFigure, renderTable } from './table.ts';

const REPOSITORIES = 20;
const ROUNDS_MIN = 10;

interface CommandFigures {
  readonly name: string;
  readonly medianMs: number;
  readonly fastestMs: number;
  /** What the median may be; null for what is only compared with. */
  readonly msMax: number | null;
}

export interface CommandLineBench {
  readonly date: string;
  readonly machine: string;
  /** The version of the Node that runs the command line. */
  readonly node: string;
  /** The load of the machine before the run. */
  readonly load: number;
  readonly commands: readonly CommandFigures[];
}

export async function benchCommandLine({ seconds }: { readonly seconds: number }): Promise<CommandLineBench> {
  const load = os.loadavg()[0] ?? 0;
  const steps: (() => void | Promise<void>)[] = [];
  const ending: Ending = { onTestFinished: (step) => void steps.push(step) };
  try {
    const strata = await startStrata(ending);
    const { token } = await createAccount(strata, 'ada');
    for (let n = 0; n < REPOSITORIES; n += 1) await api(strata, token, 'POST', '/v1/repositories', { name: `r${n}` });
    const command = await bundledCommand(ending);
    const [node = process.execPath] = command;
    const env = {
      PATH: process.env['PATH'],
      HOME: await tempDir(ending),
      SERVICE_BASE_URL: strata.url,
      SERVICE_TOKEN: token,
    };
    const programs = [
      { name: 'node -e 0', words: [node, '-e', '0'], msMax: null },
      { name: 'strata --version', words: [...command, '--version'], msMax: 150 },
      { name: 'strata repo list', words: [...command, 'repo', 'list'], msMax: 250 },
    ];
    const spans = programs.map((): number[] => []);
    const deadline = performance.now() + seconds * 1000;
    for (let round = 0; round < ROUNDS_MIN || performance.now() < deadline; round += 1) {
      for (const [index, { words }] of programs.entries()) spans[index]?.push(spanOf(words, env));
    }
    const commands = programs.map(({ name, msMax }, index) => {
      const found = spans[index] ?? [];
      return { name, msMax, medianMs: median(found), fastestMs: Math.min(...found) };
    });
    const version = oldestNode() === null ? process.version : 'v20';
    return { date: new Date().toISOString().slice(0, 10), machine: describeMachine(), node: version, load, commands };
  } finally {
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) await step();
  }
}

function spanOf([program = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): number {
  const start = performance.now();
  const { status, stderr } = spawnSync(program, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} exited ${status}: ${stderr}`);
  return performance.now() - start;
}

export function renderCommandLineBench({ date, machine, node, load, commands }: CommandLineBench): string {
  const rows = commands.map(({ name, medianMs, fastestMs, msMax }) => [
    name,
    formatFigure(medianMs),
    formatFigure(fastestMs),
    msMax === null ? '' : `${msMax}${medianMs > msMax ? ' missed' : ''}`,
  ]);
  return [
    `${date}, ${machine}; Node ${node}; load before ${formatFigure(load)}`,
    renderTable(['command', 'median ms', 'fastest ms', 'at most'], rows),
    `${REPOSITORIES} repositories, on loopback.\n`,
  ].join('\n\n');
}
