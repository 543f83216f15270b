/**
 * Pushes: small ones in a chain, one of 3,000 refs, and the first import of the whole project.
 *
 * Invariants: each push does its full work: it brings a commit that is new to the server, or the repository is
 * empty.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { git } from '../git.ts';
import type { Operation } from '../operation.ts';
import { type RecordedExchange, replayOperation } from '../recorder.ts';
import { SYNCED_VARIANT } from '../sides/http-backend.ts';
import type { Repository, Side } from '../sides/side.ts';
import { prepareChain } from './chain.ts';
import { startChainPusher } from './chain-pusher.ts';
import { record } from './recording.ts';
import type { BenchContext, PreparedWorkload, Scenario } from './scenario.ts';

const SMALL_PUSH = 'small push';
const MANY_REFS = 3_000;
const MANY_REFS_COMMITS = 100;
const MANY_REFS_PER_SECOND_MAX = 30;
const IMPORTS_PER_SECOND_MAX = 3;

export const PUSH_SCENARIOS: readonly Scenario[] = [
  {
    name: 'small-push',
    title: 'small push, alone',
    clients: 1,
    work: SMALL_PUSH,
    kind: 'push',
    target: { ratios: { 'http-backend': 6 } },
    variants: [SYNCED_VARIANT],
    prepare: prepareSmallPushes,
  },
  {
    name: 'small-push-8',
    title: 'small push, 8 clients',
    clients: 8,
    work: SMALL_PUSH,
    kind: 'push',
    target: { ratios: { 'http-backend': 6 } },
    variants: [SYNCED_VARIANT],
    prepare: prepareSmallPushes,
  },
  {
    name: 'many-refs',
    title: 'push of 3,000 refs',
    clients: 1,
    kind: 'push',
    target: { ratios: { 'http-backend': 8 } },
    variants: [SYNCED_VARIANT],
    async prepare(context, side, clients) {
      const folder = await manyRefsFolder(context);
      const command = (url: string) => ['push', '--quiet', url, 'refs/heads/*:refs/heads/*'];
      return prepareIntoEmpty(context, side, {
        name: 'many-refs',
        folder,
        command,
        perSecondMax: MANY_REFS_PER_SECOND_MAX,
        clients,
      });
    },
  },
  {
    name: 'first-import',
    title: 'first import',
    clients: 1,
    kind: 'push',
    target: { ratios: { 'http-backend': 1.2 } },
    prepare(context, side, clients) {
      const command = (url: string) => ['push', '--quiet', url, 'refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*'];
      const push = { name: 'import', command, perSecondMax: IMPORTS_PER_SECOND_MAX, clients };
      return prepareIntoEmpty(context, side, { folder: context.project.folder, ...push });
    },
  },
];

function prepareSmallPushes(context: BenchContext, side: Side, clients: number): Promise<PreparedWorkload> {
  return prepareChain(context, side, { purpose: `push-${clients}`, clients, start: startChainPusher });
}

interface IntoEmpty {
  readonly name: string;
  /** The client's repository. */
  readonly folder: string;
  readonly command: (url: string) => readonly string[];
  readonly perSecondMax: number;
  readonly clients: number;
}

/** Replays the same recorded push into a series of empty repositories. */
async function prepareIntoEmpty(context: BenchContext, side: Side, push: IntoEmpty): Promise<PreparedWorkload> {
  const recordedInto = await side.createRepository(`${push.name}-recorded`, null);
  const exchanges: readonly RecordedExchange[] = await record(side, recordedInto, push.folder, push.command);
  await side.removeRepository(recordedInto);
  // Each client makes two at least, or most of them would push into a server that is less busy than the line says.
  const countMax = Math.max(2 * push.clients, Math.ceil(context.secondsPerRound * push.perSecondMax));
  let generation = 0;
  let ready: Repository[] = [];
  let used: Repository[] = [];
  const remove = async (repositories: readonly Repository[]): Promise<void> => {
    for (const repository of repositories) await side.removeRepository(repository);
  };
  return {
    async replenish() {
      await remove(used);
      used = [];
      while (ready.length < countMax) {
        generation += 1;
        ready.push(await side.createRepository(`${push.name}-${generation}`, null));
      }
    },
    next(): Operation | null {
      const repository = ready.pop();
      if (repository === undefined) return null;
      used.push(repository);
      return replayOperation(exchanges, { port: side.port, fromPath: recordedInto.path, toPath: repository.path });
    },
    async dispose() {
      await remove([...used, ...ready]);
      ready = [];
      used = [];
    },
  };
}

/** Returns a repository of 3,000 branches on 100 commits: made once, pushed to every side. */
async function manyRefsFolder(context: BenchContext): Promise<string> {
  const folder = path.join(context.workFolder, 'many-refs.git');
  if (existsSync(folder)) return folder;
  await git(['init', '--quiet', '--bare', '--initial-branch', context.project.defaultBranch, folder]);
  let stream = '';
  for (let commit = 1; commit <= MANY_REFS_COMMITS; commit += 1) {
    stream += `commit refs/heads/${context.project.defaultBranch}\nmark :${commit}\n`;
    stream += `committer Bench <bench@example.org> ${1_760_000_000 + commit} +0000\ndata <<END\nChange ${commit}\nEND\n`;
    stream += `M 100644 inline note.md\ndata <<END\nNote ${commit}\nEND\n\n`;
  }
  for (let ref = 1; ref < MANY_REFS; ref += 1) {
    stream += `reset refs/heads/topic-${ref}\nfrom :${1 + (ref % MANY_REFS_COMMITS)}\n\n`;
  }
  await git(['fast-import', '--quiet', '--done'], { cwd: folder, input: `${stream}done\n` });
  await git(['pack-refs', '--all'], { cwd: folder });
  return folder;
}
