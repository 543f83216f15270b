/**
 * A commit of one file of 1 KiB written over REST, beside a push of the same commit to this service and to the peer.
 *
 * Invariants: every door brings the same commits, in the same order, to repositories that begin alike.
 */
import { createHash } from 'node:crypto';
import path from 'node:path';
import { type ChainFile, type CommitChain, prepareCommitChain } from '../commit-chain.ts';
import { type Project, prepareManyFiles } from '../project.ts';
import { SYNCED_VARIANT } from '../sides/http-backend.ts';
import type { Side } from '../sides/side.ts';
import { prepareChain } from './chain.ts';
import { startChainPusher } from './chain-pusher.ts';
import { startChainWriter } from './chain-writer.ts';
import { atClientCounts } from './client-counts.ts';
import type { BenchContext, Scenario } from './scenario.ts';

const MANY_FILES = 50_000;
/** What a commit over REST must reach of the rate of a push to the same service. */
const PUSH_RATIO = 1.5;
/** When the prepared ones run out, they start again in new repositories. */
const COMMITS_PER_SECOND = 300;
const PUSHED = 'strata, push';

/** What commits are written to. */
export interface WrittenTree {
  readonly title: string;
  /** The folders below the root that the file is in. */
  readonly folder: string;
  prepareProject(context: BenchContext): Promise<Project>;
}

export const WRITTEN_TREES: readonly WrittenTree[] = [
  { title: 'the project', folder: 'bench', prepareProject: async ({ project }) => project },
  {
    title: `${MANY_FILES.toLocaleString('en-US')} files`,
    folder: 'dir-3/sub-23',
    prepareProject: ({ workFolder }) => prepareManyFiles(workFolder, MANY_FILES),
  },
];

/** Returns the context with the repository of the tree, and with commits to write to it. */
export async function contextOfTree(context: BenchContext, tree: WrittenTree): Promise<BenchContext> {
  const project = await tree.prepareProject(context);
  const length = Math.ceil(context.secondsPerRound * COMMITS_PER_SECOND);
  const folder = path.join(context.workFolder, `written-${WRITTEN_TREES.indexOf(tree)}.git`);
  const file: ChainFile = { path: `${tree.folder}/note.md`, text: kibibyte };
  const chain: CommitChain = await prepareCommitChain(folder, project, file, length);
  return { ...context, project, commitChain: async () => chain };
}

/** 1 KiB of text that shares nothing with that of another commit. */
function kibibyte(index: number): string {
  const lines = Array.from({ length: 8 }, (_, line) => createHash('sha512').update(`${index} ${line}`).digest('hex'));
  return lines.map((line) => `${line.slice(1)}\n`).join('');
}

export function writingScenarios(tree: WrittenTree, counts: readonly number[] | null): readonly Scenario[] {
  const scenarios = [1, 8].map(
    (clients): Scenario => ({
      name: 'writing',
      title: `one file of 1 KiB, ${tree.title}`,
      clients,
      kind: 'push',
      target: { ratios: { [PUSHED]: PUSH_RATIO } },
      variants: [SYNCED_VARIANT],
      prepare(context, side, count) {
        const door = side.rest === null ? 'push' : 'rest';
        const start = side.rest === null ? startChainPusher : startChainWriter;
        const purpose = `written-${door}-${WRITTEN_TREES.indexOf(tree)}-${count}`;
        return prepareChain(context, side, { purpose, clients: count, start });
      },
    }),
  );
  return atClientCounts(scenarios, scenarios, counts);
}

/** Makes two sides of one that has an API: one that is written to over it, and one that is pushed to. */
export function doorsOf(sides: readonly Side[]): readonly Side[] {
  return sides.flatMap((side) =>
    side.rest === null
      ? [side]
      : [
          { ...side, label: 'strata, REST' },
          { ...side, label: PUSHED, role: 'peer', rest: null },
        ],
  );
}
