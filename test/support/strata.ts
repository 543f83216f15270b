/**
 * A whole Strata server in a process of its own, started as a user starts it, for scenarios with real clients.
 *
 * Invariants: every server listens on the loopback interface, uses a data directory of its own unless a test passes
 * one, and is ended by its pid.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Plan } from '../../core/account/plans.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { eventStoreDbSettings } from './eventstoredb/process.ts';
import { freePort } from './free-port.ts';
import { LAUNCHER_OPTIONS, serverCommand } from './server-command.ts';
import { tempDir } from './temp-dir.ts';
import { temporalServer } from './temporal/server.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** A machine may be slow, and start many servers at the same time. */
const READY_SPAN_MS = 120_000;

/**
 * Where the servers under test keep their event log: in PostgreSQL, or on a protocol server of their own that stands in
 * for EventStoreDB. `STRATA_TEST_LOG=eventstoredb npm test -- scenarios` selects the latter for scenarios that do not
 * choose.
 */
export type LogKind = 'postgres' | 'eventstoredb';

export function logKind(): LogKind {
  return process.env['STRATA_TEST_LOG'] === 'eventstoredb' ? 'eventstoredb' : 'postgres';
}

/** The parts of `/readyz` that every node shows; `clock` if its log tells its own time. */
export const PARTS_OK = {
  log: 'ok',
  ...(logKind() === 'postgres' ? { clock: 'ok' } : {}),
  layers: 'ok',
  disk: 'ok',
};

/**
 * Returns the settings for the workflow engine of servers whose tests do not choose one: none for the embedded engine,
 * or with `STRATA_TEST_WORKFLOWS=temporal` those of a new Temporal server, which ends with the test.
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
  /** The folder of the version to start; that of this version by default. */
  readonly sources?: string;
}

export interface Strata {
  readonly url: string;
  readonly dataDir: string;
  readonly env: Readonly<Record<string, string>>;
  /** The running process. */
  readonly process: ChildProcess;
  /** Everything that the process has written to stdout and stderr so far. */
  log(): string;
  /** Resolves when the process has ended, for whatever reason. */
  exited(): Promise<void>;
  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void>;
  /** Sends SIGTERM, waits for the end and returns the exit code. */
  stop(): Promise<number | null>;
  /** Kills the server and starts it again on the same data directory and address, with these settings added. */
  restart(env?: Readonly<Record<string, string>>): Promise<Strata>;
}

/** Starts a server and waits until it logs that it is ready; it ends with the test. */
export async function startStrata(context: Ending, options: StrataOptions = {}): Promise<Strata> {
  const dataDir = options.dataDir ?? (await tempDir(context));
  const port = await freePort();
  const named = options.env?.['STRATA_EVENT_STORE'] !== undefined;
  const log = (options.log ?? logKind()) === 'postgres' || named ? {} : await eventStoreDbSettings(context);
  const workflows = options.env?.['STRATA_WORKFLOWS'] === undefined ? await workflowSettings(context) : {};
  return launch(context, options.sources ?? ROOT, dataDir, port, { ...log, ...workflows, ...options.env });
}

async function launch(
  context: Ending,
  sources: string,
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
  const child = spawn(process.execPath, serverCommand(sources), {
    cwd: sources,
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
      return launch(context, sources, dataDir, port, { ...extra, ...more });
    },
  };
  cleanUp(context, async () => {
    if (!running()) return;
    await end('SIGTERM');
    if (child.exitCode !== 0) throw new Error(`The server did not stop in order:\n${written}`);
  });
  const deadline = Date.now() + READY_SPAN_MS;
  while (!written.includes('Strata is ready')) {
    if (!running()) throw new Error(`The server ended before it was ready:\n${written}`);
    if (Date.now() > deadline) throw new Error(`The server is not ready:\n${written}`);
    await sleep(20);
  }
  return strata;
}

/** Returns this process's environment without STRATA_ settings, which would otherwise reach the server. */
function strataFreeEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => !name.startsWith('STRATA_'));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; does not reject when the program fails. */
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
  // A program that ends without reading its input breaks the pipe; the exit code reports the failure.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout: Buffer.concat(out).toString('utf8'), stderr: Buffer.concat(err).toString('utf8') };
}

/** Runs `strata-admin` with the server's own configuration; does not reject when the command fails. */
export function tryAdmin(
  strata: Pick<Strata, 'env'>,
  args: readonly string[],
  input: string | Uint8Array = '',
): Promise<Finished> {
  const command = [...LAUNCHER_OPTIONS, path.join(ROOT, 'apps/admin/main.ts'), ...args];
  return run(process.execPath, command, { cwd: ROOT, env: strata.env, input });
}

/**
 * Runs `strata-admin --json` with the server's own configuration and returns its output; throws when the command fails.
 */
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

/** Makes an account by `strata-admin`, with a token that has all grants. */
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

/** Does the same from this process, which saves a scenario the start of two processes. */
export async function createAccount(
  strata: Pick<Strata, 'env'>,
  username: string,
  plan: Plan = 'PLATFORM',
): Promise<Account> {
  // A process can have one client of EventStoreDB, and the test may need it to read the log.
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
  /** The body parsed as JSON; undefined when it is not JSON. */
  readonly body: unknown;
}

/** Sends one REST request with a token. */
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

/** Creates a repository and returns its URL for git, with credentials. */
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

/** Runs the real git without the user's configuration; does not reject when git fails. */
export function tryGit(
  cwd: string,
  args: readonly string[],
  input?: string | Uint8Array,
  variables: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const env = { ...GIT_ENVIRONMENT, PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...variables };
  return run('git', args, { cwd, env, ...(input === undefined ? {} : { input }) });
}

/** Like `tryGit`, but throws with git's standard error when git fails. */
export async function git(cwd: string, args: readonly string[], input?: string | Uint8Array): Promise<string> {
  const finished = await tryGit(cwd, args, input);
  if (finished.code !== 0) throw new Error(`git ${args.join(' ')} exited ${finished.code}:\n${finished.stderr}`);
  return finished.stdout;
}

/** Makes a working tree with one commit on `main`. */
export async function newWorkTree(context: Ending): Promise<string> {
  const directory = await tempDir(context);
  await git(directory, ['init', '--quiet', '--initial-branch=main']);
  await commitFile(directory, 'README', 'hello\n');
  return directory;
}

/**
 * Creates these refs, all of one commit; none may exist yet. It writes packed-refs, since git is slow to write a file
 * for each ref.
 */
export async function createRefs(directory: string, names: readonly string[], commit: string): Promise<void> {
  await git(directory, ['pack-refs', '--all']);
  const file = path.join(directory, '.git/packed-refs');
  const known = (await readFile(file, 'utf8')).split('\n').filter((line) => /^[0-9a-f]/.test(line));
  const lines = [...known, ...names.map((name) => `${commit} ${name}`)];
  const inOrder = lines.toSorted((a, b) => Buffer.compare(Buffer.from(a.slice(41)), Buffer.from(b.slice(41))));
  await writeFile(file, `# pack-refs with: sorted \n${inOrder.join('\n')}\n`);
}

/** Writes a file, commits it and returns the commit's id. */
export async function commitFile(directory: string, name: string, content: string): Promise<string> {
  const blob = (await git(directory, ['hash-object', '-w', '--stdin'], content)).trim();
  await git(directory, ['update-index', '--add', '--cacheinfo', `100644,${blob},${name}`]);
  await git(directory, ['commit', '--quiet', '-m', `Write ${name}`]);
  return (await git(directory, ['rev-parse', 'HEAD'])).trim();
}
