/**
 * `strata`: the command line of the service.
 *
 * Invariants: the exit status is 0 for done, 1 for refused or failed, 2 for a usage error, 3 for not signed in, 130
 * after Ctrl-C. A reader that goes away ends the command quietly. No secret is in an error, and a stack trace is there
 * only with --debug. It runs on Node 20.
 */
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CommanderError } from 'commander';
import { ApiError, InvalidInputError } from './client/client.ts';
import { ProxyError } from './client/proxy.ts';
import { UnreachableError } from './client/transport.ts';
import manifest from './package.json' with { type: 'json' };
import { type Chosen, createProgram } from './program.ts';
import type { Context } from './session/context.ts';
import { Failure } from './session/failure.ts';
import { BASE_URL_OTHERWISE, loginCommand } from './session/host.ts';
import { ConfigError } from './settings/config-file.ts';
import { createTerminal, type Terminal } from './terminal/terminal.ts';
import { showableLines } from './terminal/text.ts';

const INTERRUPTED = 130;

process.on('SIGINT', () => process.exit(INTERRUPTED));
process.stdout.on('error', outputLost);
process.stderr.on('error', ({ code }: NodeJS.ErrnoException) => process.exit(code === 'EPIPE' ? 0 : 1));

const { env: environment } = process;
const terminal = createTerminal(process.stdout, process.stderr, environment);
const debug = process.argv.includes('--debug');
let baseUrl: string | null = null;

/** Standard output takes no more: what was printed is not all. */
function outputLost({ code = '' }: NodeJS.ErrnoException): void {
  // `strata repo list | head -1` has what it wanted.
  if (code === 'EPIPE') process.exit(0);
  const why = code === 'ENOSPC' ? 'the disk is full' : code;
  terminal.error(`standard output cannot be written: ${why}`);
  process.exit(1);
}

async function run({ command, given, globals }: Chosen): Promise<void> {
  baseUrl = globals.baseUrl;
  const context: Context = {
    version: manifest.version,
    program: programWords(),
    environment,
    folder: process.cwd(),
    terminal,
    globals,
    readInput: async () => (await import('node:stream/consumers')).text(process.stdin),
    ask: process.stdin.isTTY && process.stderr.isTTY ? askOnTerminal : null,
  };
  const handler = await command.load();
  await handler(context, given);
}

/** The terminal edits the line and takes Ctrl-C as ever. Its end without a line is an empty answer. */
async function askOnTerminal(question: string): Promise<string> {
  const { createInterface } = await import('node:readline');
  process.stderr.write(question);
  const lines = createInterface({ input: process.stdin, terminal: false });
  return new Promise((resolve) => {
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => resolve(''));
  });
}

/**
 * How git starts this program again: by its name where the search path leads here, so that it works after an update of
 * Node; else by its path.
 */
function programWords(): readonly string[] {
  const script = process.argv[1] ?? '';
  const folders = (environment['PATH'] ?? '').split(delimiter);
  const named = folders.map((folder) => join(folder, 'strata')).find((file) => existsSync(file));
  if (named !== undefined && realpathSync(named) === realpathSync(script)) return ['strata'];
  return [process.execPath, ...process.execArgv, script];
}

/** Reports a failure for people and returns the exit status. */
function report(shown: Terminal, error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (debug && error instanceof Error) shown.say(error.stack ?? error.message);
  if (error instanceof Failure) {
    shown.error(showableLines(error.message));
    if (error.hint !== null) shown.say(showableLines(error.hint));
    return error.status;
  }
  if (error instanceof ApiError) return reportAnswer(shown, error);
  if (error instanceof ConfigError || error instanceof InvalidInputError || error instanceof ProxyError) {
    shown.error(showableLines(error.message));
    return 2;
  }
  if (error instanceof UnreachableError) {
    shown.error(showableLines(error.message));
    shown.say(error.mayBeDone ? MAY_BE_DONE : '--base-url or SERVICE_BASE_URL names another service');
    return 1;
  }
  shown.error(
    `an error that strata does not know: ${showableLines(error instanceof Error ? error.message : String(error))}`,
  );
  if (!debug) shown.say('--debug shows where it came from');
  return 1;
}

const MAY_BE_DONE = 'What was asked may have been done all the same: look before you ask again';

function reportAnswer(shown: Terminal, error: ApiError): number {
  shown.error(showableLines(error.detail));
  const hint = hintOf(error);
  if (hint !== null) shown.say(hint);
  if (error.mayBeDone) shown.say(MAY_BE_DONE);
  if (error.status >= 500 && error.requestId !== null)
    shown.say(`The operator finds it as request ${showableLines(error.requestId)}`);
  return error.status === 401 ? 3 : 1;
}

/** What to do about a refusal. */
function hintOf({ status, detail }: ApiError): string | null {
  const grant = /lacks the grant ([A-Z_]+)/.exec(detail)?.[1];
  const login = loginCommand(baseUrl ?? environment['SERVICE_BASE_URL'] ?? BASE_URL_OTHERWISE);
  if (grant !== undefined) {
    return `Make a token that has it: strata token create --name NAME --grants ${grant} (then SERVICE_TOKEN=...), or choose it while signing in: ${login}`;
  }
  if (/lacks the scope ALL_REPO/.test(detail)) {
    return `Make a token for all repositories: strata token create --name NAME --scope ALL_REPO, or choose it while signing in: ${login}`;
  }
  if (status === 401) return `Sign in: ${login}, or set SERVICE_TOKEN`;
  return null;
}

/** Waits until what was written is with its reader, since an exit would lose it. */
async function end(status: number): Promise<void> {
  await Promise.all(
    [process.stdout, process.stderr].map(
      // An error is reported by the stream's own event, which ends the process.
      (stream) =>
        new Promise<void>((resolve) =>
          stream.write('', (error) => {
            if (error == null) resolve();
          }),
        ),
    ),
  );
  process.exit(status);
}

async function main(): Promise<number> {
  try {
    let chosen: Chosen | null = null;
    createProgram(manifest.version, (found) => {
      chosen = found;
    }).parse(process.argv.length > 2 ? process.argv : [...process.argv, '--help']);
    if (chosen !== null) await run(chosen);
    return 0;
  } catch (error) {
    return report(terminal, error);
  }
}

// No await at the top of the module: it is packed as CommonJS, which Node starts faster.
main()
  .then(end)
  .catch(() => process.exit(1));
