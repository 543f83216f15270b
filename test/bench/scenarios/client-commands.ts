/**
 * The commands whose wall time is measured with a real git.
 *
 * Invariants: a run number means the same command with the same local state for every server.
 */
import path from 'node:path';
import { CHAIN_BRANCH } from '../commit-chain.ts';
import { git } from '../git.ts';
import type { BenchContext } from './scenario.ts';

export interface ClientRun {
  readonly url: string;
  readonly run: number;
  /** A folder that does not exist before the run and is removed after it. */
  readonly destination: string;
}

/** Returns git's arguments for one run. */
export type ClientArguments = (run: ClientRun) => readonly string[];

export interface ClientCommand {
  readonly name: string;
  readonly title: string;
  /** The part of the gap between the peer and the floor that the product must close (docs/git-path.md). */
  readonly targetShare: number;
  readonly runsMax: number;
  readonly repository: 'project' | 'empty for each run';
  /** Whether runs 0 and 1 must happen in order before any later run. */
  readonly sequential: boolean;
  prepare(
    context: BenchContext,
    folder: string,
  ): Promise<{ readonly cwd: string; readonly arguments: ClientArguments }>;
}

const HEADS = 'refs/heads/*:refs/heads/*';
const TAGS = 'refs/tags/*:refs/tags/*';

function reading(name: string, title: string, runsMax: number, build: ClientArguments): ClientCommand {
  return {
    name,
    title,
    targetShare: 0.8,
    runsMax,
    repository: 'project',
    sequential: false,
    prepare: async (_, folder) => ({ cwd: folder, arguments: build }),
  };
}

export const CLIENT_COMMANDS: readonly ClientCommand[] = [
  reading('ls-remote', 'ls-remote', 30, ({ url }) => ['ls-remote', url]),
  {
    name: 'fetch',
    title: 'fetch with nothing new',
    targetShare: 0.8,
    runsMax: 30,
    repository: 'project',
    sequential: false,
    async prepare({ project }, folder) {
      await git(['clone', '--quiet', '--no-checkout', project.folder, 'copy'], { cwd: folder });
      const build: ClientArguments = ({ url }) => ['fetch', '--quiet', url, '+refs/heads/*:refs/remotes/origin/*'];
      return { cwd: path.join(folder, 'copy'), arguments: build };
    },
  },
  reading('shallow-clone', 'shallow clone', 12, ({ url, destination }) => {
    return ['clone', '--quiet', '--bare', '--depth=1', url, destination];
  }),
  reading('full-clone', 'full clone', 7, ({ url, destination }) => ['clone', '--quiet', '--bare', url, destination]),
  {
    name: 'small-push',
    title: 'small push',
    targetShare: 0.7,
    runsMax: 20,
    repository: 'project',
    sequential: true,
    async prepare(context) {
      const { folder, commits } = await context.commitChain();
      const build: ClientArguments = ({ url, run }) => [
        'push',
        '--quiet',
        url,
        `${commits[run]}:refs/heads/${CHAIN_BRANCH}`,
      ];
      return { cwd: folder, arguments: build };
    },
  },
  {
    name: 'first-import',
    title: 'first import',
    targetShare: 0.5,
    runsMax: 5,
    repository: 'empty for each run',
    sequential: false,
    prepare: async ({ project }) => ({
      cwd: project.folder,
      arguments: ({ url }) => ['push', '--quiet', url, HEADS, TAGS],
    }),
  },
];
