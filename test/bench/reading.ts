/**
 * Measures what the pages of a long history ask the reading use cases for: the first time, again, and after a push.
 *
 * Invariants: it runs on the real object database with the real git, over a log and read models in memory, so the
 * figures hold no database and no HTTP. It runs in folders of its own, which it removes.
 */
import { execFile } from 'node:child_process';
import os from 'node:os';
import { pipeline } from 'node:stream/promises';
import { createKnownAnswers, type KnownAnswers } from '../../apps/front-door/known-answers.ts';
import { type RefName, refName } from '../../core/git/ref-name.ts';
import { type ObjectId, objectId } from '../../core/kernel/ids.ts';
import { PersistentMap } from '../../core/kernel/persistent-map.ts';
import { changeRefs, refRuns, refsOfRuns } from '../../core/repository/ref-runs.ts';
import type { Ref } from '../../core/repository/state.ts';
import { blameFile } from '../../core/use-cases/reading/blame-file.ts';
import { compareRefs } from '../../core/use-cases/reading/compare-refs.ts';
import { findRefs, type WantedRefs } from '../../core/use-cases/reading/find-refs.ts';
import { listBranchPage } from '../../core/use-cases/reading/list-branch-page.ts';
import { listCommits } from '../../core/use-cases/reading/list-commits.ts';
import { listTree } from '../../core/use-cases/reading/list-tree.ts';
import { pushesOfCommits } from '../../core/use-cases/reading/pushes-of-commits.ts';
import { readCommit } from '../../core/use-cases/reading/read-commit.ts';
import { findDefaultBranch } from '../../core/use-cases/reading/resolve-ref.ts';
import { type GitReading, startGitReading } from '../support/git-reading.ts';
import { describeMachine } from './environment.ts';
import { createLongHistory, type LongHistory } from './long-history.ts';
import { percentile } from './statistics.ts';
import { formatFigure, renderTable } from './table.ts';
import { watchTurns } from './turns.ts';

/** The history that the figures of docs/benchmarks.md are of. */
const LONG: LongHistory = { commits: 80_000, files: 4_000 };
const PUSHED_LATER = 100;
const BRANCHES = 20;
/** About as many as the limits of a repository let there be. */
const MANY_REFS = 190_000;

export interface ReadingLine {
  readonly name: string;
  readonly coldMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The longest turn of the event loop during the first call. */
  readonly turnMs: number;
}

export interface ReadingBench {
  readonly machine: string;
  /** The load of the machine before the run. */
  readonly load: number;
  readonly history: LongHistory;
  readonly phases: readonly { readonly title: string; readonly lines: readonly ReadingLine[] }[];
}

interface Options {
  readonly seconds: number;
  readonly say: (line: string) => void;
  readonly history?: LongHistory;
}

export async function benchReading({ seconds, say, history = LONG }: Options): Promise<ReadingBench> {
  const load = os.loadavg()[0] ?? 0;
  const reading = await startGitReading();
  try {
    say(`making ${history.commits} commits of ${history.files} files`);
    await fastImport(reading.git.path, history);
    const rev = (name: string): ObjectId => objectId(reading.git.line(['rev-parse', name]));
    const branches = Array.from({ length: BRANCHES }, (_, index) => {
      const back = Math.floor((history.commits / 4) * (index / BRANCHES)) + PUSHED_LATER;
      return [`refs/heads/branch-${index}`, rev(`main~${back}`)] as const;
    });
    await reading.push({ 'refs/heads/main': rev(`main~${PUSHED_LATER}`), ...Object.fromEntries(branches) });
    const phases: { readonly title: string; readonly lines: readonly ReadingLine[] }[] = [];
    const measure = async (title: string, context: Context): Promise<void> => {
      say(title);
      phases.push({ title, lines: await measureAll(reading, context, seconds) });
    };
    await measure('at first, without a commit-graph', contextOf(reading));
    await reading.database.database.settled();
    const known = contextOf(reading);
    await measure('with a commit-graph, nothing known', known);
    await reading.push({ 'refs/heads/main': rev('main') });
    await measure(`after a push of ${PUSHED_LATER} commits`, known);
    say(`names of ${MANY_REFS} refs`);
    phases.push({ title: `names of ${MANY_REFS} refs`, lines: await measureNames(known, seconds) });
    return { machine: describeMachine(), load, history, phases };
  } finally {
    await reading.close();
  }
}

export function renderReadingBench({ machine, load, history, phases }: ReadingBench): string {
  const head = ['', 'first ms', 'again p50 ms', 'again p99 ms', 'longest turn ms'];
  const tables = phases.map(({ title, lines }) => {
    const rows = lines.map(({ name, coldMs, p50Ms, p99Ms, turnMs }) => [
      name,
      ...[coldMs, p50Ms, p99Ms, turnMs].map(formatFigure),
    ]);
    return `${title}\n${renderTable(head, rows)}`;
  });
  const about = `${history.commits} commits, ${history.files} files; ${machine}; load ${load.toFixed(2)} before the run`;
  return `${about}\n\n${tables.join('\n')}`;
}

async function fastImport(folder: string, history: LongHistory): Promise<void> {
  const child = execFile('git', ['-C', folder, 'fast-import', '--quiet', '--force', '--done']);
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`git fast-import ended with ${code}`))));
  });
  if (child.stdin === null) throw new TypeError('git fast-import has no input');
  await Promise.all([pipeline(createLongHistory(history), child.stdin), ended]);
}

type Context = GitReading['node'] & KnownAnswers;

/** A node that has found out nothing yet. */
function contextOf(reading: GitReading): Context {
  return { ...reading.node, ...createKnownAnswers() };
}

async function measureAll(reading: GitReading, context: Context, seconds: number): Promise<readonly ReadingLine[]> {
  const repository = await reading.current();
  const signal = new AbortController().signal;
  const page = { offset: 0, limit: 50 };
  const at = (...names: string[]) => ({ names: names.map((name) => Buffer.from(name)), folder: false });
  const tree =
    (...names: string[]) =>
    () =>
      listTree(context, repository, { ref: null, path: at(...names), entries: { offset: 0, limit: 1_000 }, signal });
  const history =
    (...names: string[]) =>
    () =>
      listCommits(context, repository, { ref: null, ofPath: { path: at(...names), signal }, page });
  const blame =
    (...names: string[]) =>
    () =>
      blameFile(context, repository, { ref: null, path: at(...names), shown: () => ({ from: 1, to: 100 }), signal });
  const tip = findDefaultBranch(repository)?.id ?? '';
  const newest = reading.git.line(['rev-list', '-50', tip]).split('\n').map(objectId);
  const works: readonly (readonly [name: string, work: () => Promise<unknown>])[] = [
    ['root folder with last commits', tree()],
    ['folder with last commits', tree('dir-3')],
    ['deep folder with last commits', tree('dir-3', 'sub-23')],
    ['history of a file changed once', history('file-1.md')],
    ['history of a folder', history('dir-3')],
    ['blame of a file changed once', blame('file-1.md')],
    ['page of branches', () => listBranchPage(context, repository, { search: '', order: 'changed', page, signal })],
    ['pushes of 50 commits', () => pushesOfCommits(context, repository, newest, signal)],
    ['commit with its diff', () => readCommit(context, repository, { id: tip, signal })],
    [
      'comparison of two branches',
      () => compareRefs(context, repository, { base: 'branch-3', head: 'main', page, signal }),
    ],
  ];
  const lines: ReadingLine[] = [];
  for (const [name, work] of works) lines.push({ name, ...(await timesOf(work, seconds / works.length)) });
  return lines;
}

/** Half of the refs are branches, half tags, in no order. */
async function measureNames(context: Context, seconds: number): Promise<readonly ReadingLine[]> {
  const ref: Ref = { id: objectId('a'.repeat(40)), type: 'commit', peeled: null };
  const names = Array.from({ length: MANY_REFS }, (_, index) => {
    const number = (index * 7_919) % MANY_REFS;
    return refName(`refs/${index % 2 === 0 ? 'heads' : 'tags'}/release-${number}.${index % 13}`);
  });
  // A server reads them from a snapshot after a start.
  const changed = changeRefs(
    PersistentMap.from<RefName, Ref>([]),
    names.map((name) => [name, ref] as const),
  );
  const refs = await refsOfRuns(eachOf(refRuns(changed)), () => 1);
  const page = { offset: 0, limit: 50 };
  const works: readonly (readonly [name: string, wanted: WantedRefs])[] = [
    ['branches by name', { kind: 'branch', search: '', order: 'name', page }],
    ['tags by version', { kind: 'tag', search: '', order: 'version', page }],
    ['search of branches', { kind: 'branch', search: '99', order: 'name', page }],
  ];
  const lines: ReadingLine[] = [];
  for (const [name, wanted] of works) {
    lines.push({ name, ...(await timesOf(() => findRefs(context, { refs }, wanted), seconds / works.length)) });
  }
  return lines;
}

async function* eachOf<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items;
}

async function timesOf(work: () => Promise<unknown>, seconds: number): Promise<Omit<ReadingLine, 'name'>> {
  const turns = watchTurns();
  const once = async (): Promise<number> => {
    const since = performance.now();
    await work();
    return performance.now() - since;
  };
  const coldMs = await once();
  const turnMs = turns.takeLongestMs();
  turns.stop();
  const again: number[] = [];
  const end = performance.now() + seconds * 1_000;
  while (again.length === 0 || performance.now() < end) again.push(await once());
  const [p50Ms, p99Ms] = [percentile(again, 0.5), percentile(again, 0.99)];
  return { coldMs, p50Ms, p99Ms, turnMs };
}
