/**
 * A whole Strata in a process of its own, as a user starts it, for scenarios with real clients.
 *
 * Must stay true: every server here listens on loopback, on a data directory of its own unless told otherwise,
 * and is ended by its pid.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plan } from '../../core/account/plans.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { protocolServerSettings } from './eventstoredb/process.ts';
import { freePort } from './free-port.ts';
import { tempDir } from './temp-dir.ts';
import { temporalServer } from './temporal/server.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const READY_SPAN_MS = 60_000;

/**
 * Where servers under test keep their log: PostgreSQL, or EventStoreDB's protocol server, a stand-in of their own.
 * `STRATA_TEST_LOG=eventstoredb npm test -- scenarios` runs scenarios there that say nothing themselves.
 */
export type LogKind = 'postgres' | 'eventstoredb';

export function logKind(): LogKind {
  return process.env['STRATA_TEST_LOG'] === 'eventstoredb' ? 'eventstoredb' : 'postgres';
}

/**
 * What carries out the workflows of servers under test that say nothing themselves: the embedded engine, or with
 * `STRATA_TEST_WORKFLOWS=temporal` a Temporal server of their own, which ends with the test.
 */
export async function workflowSettings(ending: Ending): Promise<Readonly<Record<string, string>>> {
  if (process.env['STRATA_TEST_WORKFLOWS'] !== 'temporal') return {};
  const temporal = await temporalServer(ending);
  await temporal.start();
  return temporal.env;
}

export interface StrataOptions {
  readonly dataDir?: string;
  /** `logKind()` by default. */
  readonly log?: LogKind;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Strata {
  readonly url: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** The running process. */
  readonly process: ChildProcess;
  /** Everything written to its log so far. */
  log(): string;
  /** Resolves once it has ended, by itself or not. */
  exited(): Promise<void>;
  /** SIGKILL, waited for. */
  kill(): Promise<void>;
  /** SIGTERM, waited for; the exit code. */
  stop(): Promise<number | null>;
  /** The same server again, on the same data directory and address, with other settings added. */
  restart(env?: Readonly<Record<string, string>>): Promise<Strata>;
}

/** Starts a server and waits until it says it is ready; it ends with the test. */
export async function startStrata(context: Ending, options: StrataOptions = {}): Promise<Strata> {
  const dataDir = options.dataDir ?? (await tempDir(context));
  const port = await freePort();
  const named = options.env?.['STRATA_EVENT_STORE'] !== undefined;
  const log = (options.log ?? logKind()) === 'postgres' || named ? {} : await protocolServerSettings(context);
  const workflows = options.env?.['STRATA_WORKFLOWS'] === undefined ? await workflowSettings(context) : {};
  return launch(context, dataDir, port, { ...log, ...workflows, ...options.env });
}

async function launch(
  context: Ending,
  dataDir: string,
  port: number,
  extra: Readonly<Record<string, string>>,
): Promise<Strata> {
  const env = {
    ...strataFreeEnvironment(),
    STRATA_PORT: String(port),
    STRATA_DATA_DIR: dataDir,
    STRATA_LOG_LEVEL: 'info',
    ...extra,
  };
  const child = spawn(process.execPath, [path.join(ROOT, 'apps/server/main.ts')], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let written = '';
  const note = (chunk: Buffer): void => {
    written += chunk.toString('utf8');
  };
  child.stdout.on('data', note);
  child.stderr.on('data', note);
  const exited = once(child, 'exit');
  const running = (): boolean => child.exitCode === null && child.signalCode === null;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (running()) child.kill(signal);
    await exited;
  };
  const strata: Strata = {
    url: `http://localhost:${port}`,
    dataDir,
    env,
    process: child,
    log: () => written,
    async exited() {
      await exited;
    },
    kill: () => end('SIGKILL'),
    async stop() {
      await end('SIGTERM');
      return child.exitCode;
    },
    async restart(more = {}) {
      await end('SIGKILL');
      return launch(context, dataDir, port, { ...extra, ...more });
    },
  };
  cleanUp(context, () => end('SIGTERM'));
  const deadline = Date.now() + READY_SPAN_MS;
  while (!written.includes('Strata is ready')) {
    if (!running()) throw new Error(`The server ended before it was ready:\n${written}`);
    if (Date.now() > deadline) throw new Error(`The server is not ready:\n${written}`);
    await sleep(20);
  }
  return strata;
}

/** This process's environment without settings that would reach the server by accident. */
function strataFreeEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith('STRATA_'));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; never rejects for a failure of the program. */
async function run(
  command: string,
  args: readonly string[],
  options: {
    readonly cwd?: string;
    readonly env?: Readonly<Record<string, string>>;
    readonly input?: string | Uint8Array;
  } = {},
): Promise<Finished> {
  const child = spawn(command, [...args], { cwd: options.cwd, env: options.env ?? process.env, stdio: 'pipe' });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  // A program that ends without reading its input breaks the pipe: its exit code tells the story.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: Buffer.concat(out).toString('utf8'), stderr: Buffer.concat(err).toString('utf8') };
}

/** `strata-admin` on the server's own configuration; never rejects for a refusal. */
export function tryAdmin(
  strata: Pick<Strata, 'env'>,
  args: readonly string[],
  input: string | Uint8Array = '',
): Promise<Finished> {
  const command = [path.join(ROOT, 'apps/admin/main.ts'), ...args];
  return run(process.execPath, command, { cwd: ROOT, env: strata.env, input });
}

/** `strata-admin … --json` on the server's own configuration; throws when it refuses. */
export async function admin(strata: Pick<Strata, 'env'>, args: readonly string[], input = ''): Promise<unknown> {
  const finished = await tryAdmin(strata, ['--json', ...args], input);
  if (finished.code !== 0)
    throw new Error(`strata-admin ${args.join(' ')} exited ${finished.code}:\n${finished.stderr}`);
  return JSON.parse(finished.stdout);
}

export interface Account {
  readonly id: string;
  readonly username: string;
  readonly token: string;
}

/** An account with a token that may do everything, made by `strata-admin`. */
export async function createAccountByCommand(
  strata: Pick<Strata, 'env'>,
  username: string,
  plan: Plan = 'PLATFORM',
): Promise<Account> {
  const email = `${username}@example.org`;
  const args = ['account', 'create', '--username', username, '--email', email, '--password-stdin', '--plan', plan];
  const created = (await admin(strata, args, 'correct horse battery\n')) as { readonly id: string };
  const token = await createToken(strata, username);
  return { id: created.id, username, token: token.token };
}

/** The same, made from within this process: a scenario that is about something else need not start two for it. */
export async function createAccount(
  strata: Pick<Strata, 'env'>,
  username: string,
  plan: Plan = 'PLATFORM',
): Promise<Account> {
  // A process has one client of EventStoreDB at most, and the test may look into the log with it.
  if (strata.env['STRATA_EVENT_STORE'] === 'eventstoredb') return createAccountByCommand(strata, username, plan);
  const { makeAccount } = await import('./administering.ts');
  return { username, ...(await makeAccount(strata.env, username, plan)) };
}

export async function createToken(
  strata: Pick<Strata, 'env'>,
  username: string,
  more: readonly string[] = [],
): Promise<{ readonly id: string; readonly token: string }> {
  const args = ['token', 'create', '--username', username, '--name', 'scenario', ...more];
  return (await admin(strata, args)) as { readonly id: string; readonly token: string };
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined when it is none. */
  readonly body: unknown;
}

/** One REST call with a token. */
export async function api(
  strata: Pick<Strata, 'url'>,
  token: string,
  method: string,
  target: string,
  body?: unknown,
): Promise<ApiAnswer> {
  const response = await fetch(strata.url + target, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json = response.headers.get('content-type')?.includes('json') === true;
  return { status: response.status, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
}

/** Creates a repository and answers the URL that git takes, credentials included. */
export async function createRepository(strata: Pick<Strata, 'url'>, account: Account, name: string): Promise<string> {
  const created = await api(strata, account.token, 'POST', '/v1/repositories', { name });
  if (created.status !== 201) throw new Error(`The repository was not created: ${created.status} ${created.text}`);
  return gitUrl(strata, account, name);
}

export function gitUrl(
  strata: Pick<Strata, 'url'>,
  account: Pick<Account, 'username' | 'token'>,
  name: string,
): string {
  const url = new URL(`${strata.url}/r/${account.username}/${name}.git`);
  url.username = account.username;
  url.password = account.token;
  return url.href;
}

const GIT_ENVIRONMENT = {
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'A U Thor',
  GIT_AUTHOR_EMAIL: 'author@example.org',
  GIT_COMMITTER_NAME: 'C O Mitter',
  GIT_COMMITTER_EMAIL: 'committer@example.org',
  LC_ALL: 'C.UTF-8',
};

/** Real git, with nothing of the user's configuration; never rejects for a failure of git. */
export function tryGit(cwd: string, args: readonly string[], input?: string | Uint8Array): Promise<Finished> {
  const env = { ...GIT_ENVIRONMENT, PATH: process.env['PATH'] ?? '/usr/bin:/bin' };
  return run('git', args, { cwd, env, ...(input === undefined ? {} : { input }) });
}

/** As `tryGit`; throws what git wrote when it fails. */
export async function git(cwd: string, args: readonly string[], input?: string | Uint8Array): Promise<string> {
  const finished = await tryGit(cwd, args, input);
  if (finished.code !== 0) throw new Error(`git ${args.join(' ')} exited ${finished.code}:\n${finished.stderr}`);
  return finished.stdout;
}

/** A working copy with one commit on `main`. */
export async function newWorkTree(context: Ending): Promise<string> {
  const directory = await tempDir(context);
  await git(directory, ['init', '--quiet', '--initial-branch=main']);
  await commitFile(directory, 'README', 'hello\n');
  return directory;
}

/** Makes the refs, all of one commit; none may exist. Written packed, since a file each takes git long. */
export async function createRefs(directory: string, names: readonly string[], commit: string): Promise<void> {
  await git(directory, ['pack-refs', '--all']);
  const file = path.join(directory, '.git/packed-refs');
  const known = (await readFile(file, 'utf8')).split('\n').filter((line) => /^[0-9a-f]/.test(line));
  const lines = [...known, ...names.map((name) => `${commit} ${name}`)];
  const inOrder = lines.toSorted((a, b) => Buffer.compare(Buffer.from(a.slice(41)), Buffer.from(b.slice(41))));
  await writeFile(file, `# pack-refs with: sorted \n${inOrder.join('\n')}\n`);
}

/** Writes a file, commits it and answers the commit's id. */
export async function commitFile(directory: string, name: string, content: string): Promise<string> {
  const blob = (await git(directory, ['hash-object', '-w', '--stdin'], content)).trim();
  await git(directory, ['update-index', '--add', '--cacheinfo', `100644,${blob},${name}`]);
  await git(directory, ['commit', '--quiet', '-m', `Write ${name}`]);
  return (await git(directory, ['rev-parse', 'HEAD'])).trim();
}
