/**
 * `npm run bench`: measures this service and git http-backend in alternation, on one machine, in one run.
 *
 * Invariants: everything runs on the loopback interface and is bounded in time. Whatever happens, the bench ends
 * every program that it started, by id, and removes its folder.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { benchAudit, renderAuditBench } from './audit.ts';
import { benchCommandLine, renderCommandLineBench } from './command-line.ts';
import { type CommitChain, NOTE, prepareCommitChain } from './commit-chain.ts';
import { benchGrowth, renderGrowthBench } from './growth.ts';
import { benchLogs, renderLogBench } from './log.ts';
import { type BenchOptions, readOptions, UsageError, usageText } from './options.ts';
import { benchPages, renderPagesBench } from './pages.ts';
import { prepareProject } from './project.ts';
import { benchReading, renderReadingBench } from './reading.ts';
import { benchRefCount, renderRefCountBench } from './ref-count.ts';
import type { ScenarioResult } from './results.ts';
import { runBench } from './run.ts';
import { benchScale, renderScaleBench } from './scale/scale.ts';
import {
  ALL_NAMES,
  AUDIT,
  COMMAND_LINE,
  GROWTH,
  LOG,
  PAGES,
  READING,
  REF_COUNT,
  SCALE,
  STORAGE,
  WEBHOOKS,
} from './scenarios/catalogue.ts';
import type { BenchContext } from './scenarios/scenario.ts';
import { findHttpBackendPrograms } from './sides/http-backend.ts';
import { type StartedSides, startSides } from './sides/start.ts';
import { benchStorage, renderStorageBench } from './storage.ts';
import { renderResult } from './table.ts';
import { benchWebhooks, renderWebhookBench } from './webhooks.ts';

/** The number of small pushes prepared in advance; when they run out, they start again in a new repository. */
const CHAIN_COMMITS_PER_SECOND = 150;
/** How far the ratio of a server compared with itself may be from 1. */
const SELF_CHECK_TOLERANCE = 1.25;

async function main(): Promise<number> {
  const options = readOptionsOrExplain();
  if (options === null) return 2;
  for (const { name, run } of ALONE) {
    if (options.only?.includes(name) !== true) continue;
    if (options.only.length > 1) return sayAlone(name);
    process.stdout.write(await run(options));
    return 0;
  }
  const programs = options.sides === 'strata' ? null : await findHttpBackendPrograms();
  if (programs === null && options.sides !== 'strata') {
    say('The bench compares with git http-backend behind nginx and fcgiwrap, and one of them is missing.');
    say('On Debian: apt-get install nginx fcgiwrap   (or measure alone: --side strata)');
    return 1;
  }
  const workFolder = await mkdtemp(path.join(tmpdir(), 'strata-bench-'));
  // When root runs the bench, the embedded PostgreSQL runs as another user, who must be able to traverse this folder.
  await chmod(workFolder, 0o711);
  let sides: StartedSides | null = null;
  let cleaned: Promise<void> | null = null;
  const cleanUp = (): Promise<void> => {
    cleaned ??= (async () => {
      await sides?.end();
      await rm(workFolder, { recursive: true, force: true, maxRetries: 5 });
    })();
    return cleaned;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
  }
  try {
    const context = await prepareContext(options, workFolder);
    sides = await startSides(options, context.project, workFolder, programs);
    const result = await runBench({ options, context, sides, programs, say });
    process.stdout.write(options.json ? jsonText(result) : renderResult(result));
    if (result.faults.length > 0) return 1;
    return options.selfCheck ? judgeSelfCheck(result.scenarios) : 0;
  } finally {
    await cleanUp();
  }
}

function readOptionsOrExplain(): BenchOptions | null {
  try {
    return readOptions(
      process.argv.slice(2),
      process.env,
      ALL_NAMES.map(({ name }) => name),
    );
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    say(`${error.message}\n\n${usageText(ALL_NAMES)}`);
    return null;
  }
}

/** Benches that run alone, without the servers of the other scenarios. */
const ALONE: readonly { readonly name: string; readonly run: (options: BenchOptions) => Promise<string> }[] = [
  {
    name: LOG.name,
    run: async ({ seconds, json }) => {
      const result = await benchLogs({ seconds, say });
      return json ? jsonText(result) : renderLogBench(result);
    },
  },
  {
    name: WEBHOOKS.name,
    run: async ({ seconds, json }) => {
      const result = await benchWebhooks({ seconds, say });
      return json ? jsonText(result) : renderWebhookBench(result);
    },
  },
  {
    name: READING.name,
    run: async ({ seconds, json }) => {
      const result = await benchReading({ seconds, say });
      return json ? jsonText(result) : renderReadingBench(result);
    },
  },
  {
    name: PAGES.name,
    run: async ({ seconds, bundle, json }) => {
      const result = await benchPages({ seconds, bundle, say });
      return json ? jsonText(result) : renderPagesBench(result);
    },
  },
  {
    name: COMMAND_LINE.name,
    run: async ({ seconds, json }) => {
      const result = await benchCommandLine({ seconds });
      return json ? jsonText(result) : renderCommandLineBench(result);
    },
  },
  {
    name: STORAGE.name,
    run: async ({ seconds, rounds, bundle, json }) => {
      const result = await benchStorage({ seconds, rounds, bundle, say });
      return json ? jsonText(result) : renderStorageBench(result);
    },
  },
  {
    name: GROWTH.name,
    run: async ({ pushes, json }) => {
      const result = await benchGrowth({ pushes: pushes ?? 100_000, say });
      return json ? jsonText(result) : renderGrowthBench(result);
    },
  },
  {
    name: REF_COUNT.name,
    run: async ({ refs, json }) => {
      const result = await benchRefCount({ refs: refs ?? 200_000, say });
      return json ? jsonText(result) : renderRefCountBench(result);
    },
  },
  {
    name: SCALE.name,
    run: async ({ pushes, refs, repositories, nodes, parts, seconds, rounds, json }) => {
      const sizes = { pushes: pushes ?? 100_000, refs: refs ?? 100_000 };
      const more = { repositories: repositories ?? 10_000, nodes: nodes ?? 3 };
      const result = await benchScale({ ...sizes, ...more, parts, seconds, rounds, say });
      return json ? jsonText(result) : renderScaleBench(result);
    },
  },
  {
    name: AUDIT.name,
    run: async ({ entries, json }) => {
      const result = await benchAudit({ entries, say });
      return json ? jsonText(result) : renderAuditBench(result);
    },
  },
];

function jsonText(result: object): string {
  return `${JSON.stringify(result, null, 2)}\n`;
}

function sayAlone(name: string): number {
  say(`${name} is measured alone: --only ${name}`);
  return 2;
}

async function prepareContext(options: BenchOptions, workFolder: string): Promise<BenchContext> {
  say(
    options.bundle === null
      ? 'Generating a repository (STRATA_REAL_REPOSITORY names no bundle)'
      : 'Unpacking the bundle',
  );
  const project = await prepareProject(workFolder, options.bundle);
  const chainLength = Math.ceil(options.seconds * CHAIN_COMMITS_PER_SECOND);
  let chain: Promise<CommitChain> | null = null;
  return {
    project,
    workFolder,
    secondsPerRound: options.seconds,
    rounds: options.rounds,
    commitChain() {
      if (chain === null) say('Preparing small pushes');
      chain ??= prepareCommitChain(path.join(workFolder, 'chain.git'), project, NOTE, chainLength);
      return chain;
    },
  };
}

function judgeSelfCheck(scenarios: readonly ScenarioResult[]): number {
  let status = 0;
  for (const { title, sides } of scenarios) {
    for (const { comparison } of sides) {
      if (comparison === null) continue;
      const { rateRatio } = comparison;
      if (rateRatio <= SELF_CHECK_TOLERANCE && rateRatio >= 1 / SELF_CHECK_TOLERANCE) continue;
      say(`${title}: a server against itself gave a ratio of ${rateRatio.toFixed(2)}`);
      status = 1;
    }
  }
  return status;
}

/** Progress is printed to standard error, since standard output holds only the result. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

process.exitCode = await main();
