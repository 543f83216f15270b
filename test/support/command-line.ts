/**
 * The command line as a person runs it, in a home of its own: bundled or installed, on the oldest Node that it
 * supports.
 *
 * Invariants: no run reads the configuration of the person who runs the tests, theirs or git's.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Ending } from './cleanup.ts';
import type { Finished, Strata } from './strata.ts';
import { tempDir } from './temp-dir.ts';

export interface CommandLine {
  /** The folder that holds the configuration file, git's configuration, and nothing else at first. */
  readonly home: string;
  readonly configFile: string;
  readonly env: Readonly<Record<string, string>>;
  /** What starts the command, before its arguments. */
  readonly command: readonly string[];
  /** Runs the command to its end. */
  run(args: readonly string[], options?: RunOptions): Promise<Finished>;
  /** The same, but throws unless it exits with 0; returns its standard output. */
  done(args: readonly string[], options?: RunOptions): Promise<string>;
  /** The same, parsed as JSON; adds `--json`. */
  json<Body>(args: readonly string[], options?: RunOptions): Promise<Body>;
  /** Runs any program in the same environment. */
  program(command: readonly string[], options?: RunOptions): Promise<Finished>;
}

export interface RunOptions {
  readonly cwd?: string;
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface CommandLineOptions {
  /** What starts the command. */
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Bundles the command line, as its package does; returns what starts it, on the oldest Node that is here. */
export async function bundledCommand(context: Ending): Promise<readonly string[]> {
  const { bundleCommand } = await import('../../apps/cli/build/bundle.ts');
  const file = path.join(await tempDir(context), 'strata.cjs');
  await bundleCommand(file);
  return [oldestNode() ?? process.execPath, file];
}

/** Returns a command line for a new home, which talks to the service. */
export async function commandLine(
  context: Ending,
  strata: Pick<Strata, 'url'>,
  options: CommandLineOptions,
): Promise<CommandLine> {
  const home = await tempDir(context);
  await mkdir(path.join(home, 'work'));
  const env = {
    HOME: home,
    PATH: process.env['PATH'] ?? '/usr/bin:/bin',
    LC_ALL: 'C.UTF-8',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_AUTHOR_NAME: 'A U Thor',
    GIT_AUTHOR_EMAIL: 'author@example.org',
    GIT_COMMITTER_NAME: 'C O Mitter',
    GIT_COMMITTER_EMAIL: 'committer@example.org',
    SERVICE_BASE_URL: strata.url,
    ...options.env,
  };
  const { command } = options;
  const program: CommandLine['program'] = async ([name = '', ...args], { cwd, input, env: more } = {}) => {
    const child = spawn(name, args, { cwd: cwd ?? path.join(home, 'work'), env: { ...env, ...more }, stdio: 'pipe' });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, stdout, stderr };
  };
  const run: CommandLine['run'] = (args, more) => program([...command, ...args], more);
  const done: CommandLine['done'] = async (args, more) => {
    const { code, stdout, stderr } = await run(args, more);
    if (code !== 0) throw new Error(`strata ${args.join(' ')} exited ${code}:\n${stdout}${stderr}`);
    return stdout;
  };
  return {
    home,
    configFile: path.join(home, '.config/strata/config.toml'),
    env,
    command,
    run,
    done,
    program,
    json: async (args, more) => JSON.parse(await done([...args, '--json'], more)),
  };
}

/** The Node of the machine, if it is the oldest that the command line supports; else null. */
export function oldestNode(): string | null {
  const folders = (process.env['PATH'] ?? '')
    .split(path.delimiter)
    .filter((folder) => !folder.includes('node_modules'));
  const candidates = folders.map((folder) => path.join(folder, 'node'));
  return (
    candidates.find((node) => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.startsWith('v20.')) ?? null
  );
}
