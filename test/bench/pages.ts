/**
 * Measures whole pages of the website: a server on PostgreSQL, over HTTP, asked with the cookie of who is signed in.
 *
 * Invariants: each repository's page is asked first from a server that has just started with an empty cache on its
 * disk, then again and again. A page that is not answered with 200 ends the bench.
 */
import { Agent, request } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { LONG_PAGE_BYTES_MAX } from '../../apps/website/rendering/weight.ts';
import { signIn } from '../support/site-browser.ts';
import { type Account, api, createAccount, gitUrl } from '../support/strata.ts';
import { describeMachine, describeVersions } from './environment.ts';
import { git, gitLines, gitText } from './git.ts';
import { createLongHistory, type LongHistory } from './long-history.ts';
import { prepareProject } from './project.ts';
import {
  createRepository,
  type Ground,
  onGround,
  openScene,
  type Scene,
  startServer,
  type WatchedServer,
} from './scene.ts';
import { percentile } from './statistics.ts';
import { formatFigure, renderTable } from './table.ts';

/** What a page may take warm, to its first content and to its end, weigh, and keep the event loop. */
const FIRST_CONTENT_MS_MAX = 100;
const WARM_MS_MAX = 50;
const PAGE_KB_MAX = 60;
const TURN_MS_MAX = 10;
/** Pages that show a file or a diff may weigh more, and take the time that they take. */
const LONG_PAGE = /\/(blob|blame|commit|compare)[/?]/;
const LONG_PAGE_KB_MAX = LONG_PAGE_BYTES_MAX / 1_000;
/** Each page is asked at least so often. */
const WARM_REQUESTS_MIN = 20;
/** How long a server may work on after the first answer: it writes a commit-graph of a long history. */
const READY_SPAN = { waitMs: 1_000, windowMs: 150 };
const SETTLE_SPAN = { waitMs: 30_000, windowMs: 150 };

const LONG: LongHistory = { commits: 80_000, files: 4_000 };

interface PageFigures {
  readonly name: string;
  readonly coldMs: number;
  /** To the first bytes of the page. */
  readonly firstP50Ms: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Processor time of the server and its git for one of the later answers. */
  readonly cpuMs: number;
  /** The bytes of the page, without what it refers to. */
  readonly bytes: number;
  /** The longest turn of the event loop, at the first answer and in all later ones. */
  readonly coldTurnMs: number;
  readonly warmTurnMs: number;
  /** A diff may take as long as its bounds let it. */
  readonly isDiff: boolean;
  readonly isLong: boolean;
}

export interface PagesBench {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  /** The load of the machine before the run. */
  readonly load: number;
  readonly groups: readonly {
    readonly title: string;
    readonly pages: readonly PageFigures[];
    readonly blame: GitBlame | null;
  }[];
}

/** What git itself takes for a file whose blame is among the pages: its process in a repository of the same commits. */
interface GitBlame {
  readonly file: string;
  readonly medianMs: number;
}

interface Options {
  /** A fourth of it is spent on each page. */
  readonly seconds: number;
  readonly bundle: string | null;
  readonly say: (text: string) => void;
}

export async function benchPages({ seconds, bundle, say }: Options): Promise<PagesBench> {
  const load = os.loadavg()[0] ?? 0;
  return onGround(async (ground) => {
    const scene = { ...(await openScene(ground, 'pages')), cookie: '' };
    say('Pushing the repositories');
    const groups = await fill(scene, ground, bundle);
    const measured: PagesBench['groups'][number][] = [];
    for (const { title, pages, blamed } of groups) {
      say(title);
      const figures: PageFigures[] = [];
      for (const page of pages) figures.push(await measure(scene, page, seconds / 4));
      measured.push({ title, pages: figures, blame: blamed === null ? null : await measureGitBlame(blamed) });
    }
    const date = new Date().toISOString().slice(0, 10);
    return { date, machine: describeMachine(), versions: await describeVersions(null), load, groups: measured };
  });
}

interface PagesScene extends Scene {
  cookie: string;
}

/** The server that runs, or for a page of a repository a new one. */
async function serverFor(scene: PagesScene, { target }: BenchedPage): Promise<WatchedServer> {
  return scene.server === null || /^\/bench\/./.test(target) ? startServer(scene) : scene.server;
}

interface BenchedPage {
  readonly name: string;
  readonly target: string;
  readonly isDiff?: boolean;
  /** Asked without the cookie. */
  readonly byStranger?: boolean;
}

type Pages = readonly BenchedPage[];

/** A file of a repository on this machine. */
interface LocalFile {
  readonly folder: string;
  readonly branch: string;
  readonly file: string;
}

interface PageGroup {
  readonly title: string;
  readonly pages: Pages;
  /** The file whose blame is among the pages. */
  readonly blamed: LocalFile | null;
}

/** Makes an account with both repositories, and returns the pages to measure. */
async function fill(scene: PagesScene, { folder }: Ground, bundle: string | null): Promise<readonly PageGroup[]> {
  await startServer(scene);
  const account = await createAccount(scene, 'bench');
  const { cookies } = await signIn(scene, account);
  scene.cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const project = await prepareProject(folder, bundle);
  const add = async (name: string, defaultBranch: string, from: string): Promise<void> => {
    await createRepository(scene, account, name, defaultBranch);
    const refs = ['refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*'];
    await git(['push', '--quiet', gitUrl(scene, account, name), ...refs], { cwd: from });
  };
  await add('project', project.defaultBranch, project.folder);
  const long = path.join(folder, 'long.git');
  await git(['init', '--quiet', '--bare', '--initial-branch=main', long]);
  await git(['fast-import', '--quiet', '--force', '--done'], { cwd: long, input: createLongHistory(LONG) });
  await add('long', 'main', long);
  const { commits, files } = LONG;
  return [
    { title: 'Without a repository', pages: await pagesOfAccount(scene, account), blamed: null },
    { title: `Of ${project.description}`, ...(await pagesOfProject(project.folder, project.defaultBranch)) },
    {
      title: `Of ${commits.toLocaleString('en-US')} commits and ${files} files`,
      pages: PAGES_OF_LONG,
      blamed: { folder: long, branch: 'main', file: 'file-1.md' },
    },
  ];
}

async function pagesOfAccount(scene: PagesScene, account: Account): Promise<Pages> {
  const hook = { url: 'https://hooks.example.org/push', events: ['push'] };
  const made = await api(scene, account.token, 'POST', '/v1/webhooks', hook);
  if (made.status !== 201) throw new Error(`The webhook was not created: ${made.status} ${made.text}`);
  const targets = [
    ...['/docs', '/docs/git', '/docs/webhooks', '/docs/api', '/docs/api/webhooks', '/bench', '/bench?q=pro', '/new'],
    ...['/access-tokens', '/access-tokens/create', '/webhooks', '/usage', '/settings', '/mfa-tokens'],
    '/mfa-tokens/add/app',
  ];
  const signedOut = ['/', '/sign-in', '/sign-up'].map((target) => ({ name: target, target, byStranger: true }));
  return [...signedOut, ...targets.map((target) => ({ name: target, target }))];
}

async function pagesOfProject(folder: string, branch: string): Promise<Omit<PageGroup, 'title'>> {
  const at = { cwd: folder };
  const tip = await gitText(['rev-parse', branch], at);
  const entries = await gitLines(['ls-tree', '-r', '-t', '-l', tip], at);
  const found = entries.flatMap((line) => {
    const [, type, size, name] = /^\d+ (blob|tree) [0-9a-f]+ +(\d+|-)\t([\w./-]+)$/.exec(line) ?? [];
    return type === undefined || name === undefined ? [] : [{ type, bytes: Number(size), name }];
  });
  const trees = found.filter(({ type }) => type === 'tree');
  const blobs = found.filter(({ type }) => type === 'blob').toSorted((a, b) => b.bytes - a.bytes);
  const folderName = trees[0]?.name ?? '';
  const largest = blobs.find(({ bytes }) => bytes <= 1_048_576)?.name ?? '';
  const source = blobs.find(({ name, bytes }) => name.endsWith('.js') && bytes < 100_000)?.name ?? blobs[0]?.name ?? '';
  const oldest = (
    await gitLines(['for-each-ref', '--sort=creatordate', '--format=%(refname:short)', 'refs/tags'], at)
  )[0];
  const compared = oldest ?? (await gitLines(['rev-list', '--max-count=100', tip], at)).at(-1) ?? tip;
  const named = {
    home: '',
    commits: `/commits/${branch}`,
    branches: '/branches',
    tags: '/tags',
    activity: '/activity',
  };
  const more = {
    settings: '/settings',
    'tags with a "1"': '/tags?q=1',
    'commits, page 50': `/commits/${branch}?page=50`,
  };
  const places = [
    { name: `folder ${folderName}`, target: `/tree/${branch}/${folderName}` },
    { name: `file ${source}`, target: `/blob/${branch}/${source}` },
    { name: 'largest file that is shown', target: `/blob/${branch}/${largest}` },
    { name: `history of ${source}`, target: `/commits/${branch}/${source}` },
    { name: 'go to file', target: `/files?${new URLSearchParams({ ref: branch, q: 'index' })}` },
    { name: 'search', target: `/search?${new URLSearchParams({ ref: branch, q: 'function' })}` },
    { name: `blame of ${source}`, target: `/blame/${branch}/${source}` },
    { name: 'commit', target: `/commit/${tip}`, isDiff: true },
    { name: 'comparison', target: `/compare/${compared}...${branch}`, isDiff: true },
  ];
  const all = [...Object.entries({ ...named, ...more }).map(([name, target]) => ({ name, target })), ...places];
  const pages = all.map((page) => ({ ...page, target: `/bench/project${page.target}` }));
  return { pages, blamed: { folder, branch, file: source } };
}

const PAGES_OF_LONG: Pages = [
  { name: 'home', target: '/bench/long' },
  { name: 'folder', target: '/bench/long/tree/main/dir-3' },
  { name: 'deep folder', target: '/bench/long/tree/main/dir-3/sub-23' },
  { name: 'file', target: '/bench/long/blob/main/file-1.md' },
  { name: 'go to file', target: '/bench/long/files?ref=main&q=file-1' },
  { name: 'search', target: '/bench/long/search?ref=main&q=line' },
  { name: 'search of commits', target: '/bench/long/commits/main?text=nothing+like+this' },
  { name: 'blame of file-1.md', target: '/bench/long/blame/main/file-1.md' },
  { name: 'commits', target: '/bench/long/commits/main' },
  { name: 'commits, page 500', target: '/bench/long/commits/main?page=500' },
];

/** How often git itself is asked. */
const GIT_BLAMES = 5;

async function measureGitBlame({ folder, branch, file }: LocalFile): Promise<GitBlame> {
  const times: number[] = [];
  for (let count = 0; count < GIT_BLAMES; count += 1) {
    const since = performance.now();
    await git(['blame', '--porcelain', branch, '--', file], { cwd: folder });
    times.push(performance.now() - since);
  }
  return { file, medianMs: percentile(times, 0.5) };
}

async function measure(scene: PagesScene, page: BenchedPage, seconds: number): Promise<PageFigures> {
  const { name, target, isDiff = false, byStranger = false } = page;
  const server = await serverFor(scene, page);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const cookie = byStranger ? '' : scene.cookie;
  const ask = () => timed(scene, agent, target, cookie);
  try {
    // The connection, the session and what every page needs are not what makes a page cold.
    await timed(scene, agent, '/docs', cookie);
    await server.group.settle(READY_SPAN);
    await server.longestTurnMs();
    const first = await ask();
    const coldTurnMs = await server.longestTurnMs();
    await server.group.settle(SETTLE_SPAN);
    await ask();
    await server.longestTurnMs();
    const again: number[] = [];
    const firsts: number[] = [];
    const cpuBefore = server.group.cpuSeconds();
    const end = performance.now() + seconds * 1_000;
    while (again.length < WARM_REQUESTS_MIN || performance.now() < end) {
      const { ms, firstMs } = await ask();
      again.push(ms);
      firsts.push(firstMs);
    }
    const cpuMs = ((server.group.cpuSeconds() - cpuBefore) * 1_000) / again.length;
    const warmTurnMs = await server.longestTurnMs();
    const [p50Ms, p99Ms] = [percentile(again, 0.5), percentile(again, 0.99)];
    const times = {
      coldMs: first.ms,
      firstP50Ms: percentile(firsts, 0.5),
      p50Ms,
      p99Ms,
      cpuMs,
      coldTurnMs,
      warmTurnMs,
    };
    return { name, isDiff, isLong: LONG_PAGE.test(target), bytes: first.bytes, ...times };
  } finally {
    agent.destroy();
  }
}

interface Answered {
  readonly ms: number;
  readonly firstMs: number;
  readonly bytes: number;
}

/** Asks for a page; resolves when its last byte has arrived. */
function timed({ port }: PagesScene, agent: Agent, target: string, cookie: string): Promise<Answered> {
  const since = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path: target, headers: { cookie }, agent }, (answer) => {
      let bytes = 0;
      let firstMs = 0;
      answer.on('data', (chunk: Buffer) => {
        if (bytes === 0) firstMs = performance.now() - since;
        bytes += chunk.length;
      });
      answer.on('error', reject);
      answer.on('end', () => {
        if (answer.statusCode === 200) resolve({ ms: performance.now() - since, firstMs, bytes });
        else reject(new Error(`${target} was answered with ${answer.statusCode}`));
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

const HEAD = [
  'page',
  'first ms',
  'content p50 ms',
  'again p50 ms',
  'again p99 ms',
  'CPU ms',
  'KB',
  'longest turn, first',
  'longest turn, again',
];

const LEGEND = [
  'From the request to the last byte, over a kept connection. First: the first page of a repository that a server shows',
  'after a start with an empty cache, but for one page of the docs; again: one request after the other. Content: to the',
  'first bytes of the later answers. CPU: of the server and its git, for one of them. Turn: processor time that one turn',
  'of the event loop took, in ms, garbage collection included.',
].join('\n');

export function renderPagesBench({ date, machine, versions, load, groups }: PagesBench): string {
  const tables = groups.map(({ title, pages, blame }) => {
    const beside =
      blame === null ? '' : `\n\ngit blame of ${blame.file} on this machine: ${formatFigure(blame.medianMs)} ms`;
    return `${title}\n\n${renderTable(HEAD, pages.map(rowOf))}${beside}`;
  });
  const about = `${date}, ${machine}; ${versions}; load ${load.toFixed(2)} before the run`;
  return `${about}\n\n${tables.join('\n\n')}\n\n${LEGEND}\n`;
}

function rowOf(page: PageFigures): readonly string[] {
  const { name, coldMs, firstP50Ms, p50Ms, p99Ms, cpuMs, bytes, coldTurnMs, warmTurnMs, isDiff, isLong } = page;
  const within = (value: number, max: number): string =>
    `${formatFigure(value)}${value < max ? '' : ` (< ${max}, missed)`}`;
  return [
    isDiff ? `${name} (a diff)` : name,
    formatFigure(coldMs),
    within(firstP50Ms, FIRST_CONTENT_MS_MAX),
    isLong ? formatFigure(p50Ms) : within(p50Ms, WARM_MS_MAX),
    formatFigure(p99Ms),
    formatFigure(cpuMs),
    within(bytes / 1_000, isLong ? LONG_PAGE_KB_MAX : PAGE_KB_MAX),
    within(coldTurnMs, TURN_MS_MAX),
    within(warmTurnMs, TURN_MS_MAX),
  ];
}
