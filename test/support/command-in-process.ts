/**
 * Runs the handler of a subcommand in this process, as the command line would, against a service that a test plays.
 *
 * Invariants: the configuration of the person who runs the tests is neither read nor written.
 */
import path from 'node:path';
import type { Context, Given, Run } from '../../apps/cli/session/context.ts';
import { createTerminal } from '../../apps/cli/terminal/terminal.ts';
import type { Ending } from './cleanup.ts';
import { tempDir } from './temp-dir.ts';

export interface InProcess {
  readonly environment: Readonly<Record<string, string>>;
  readonly options?: Readonly<Record<string, string | number | true>>;
}

export interface Written {
  /** What the handler threw; null if it ended well. */
  readonly error: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

export async function runInProcess(
  ending: Ending,
  run: Run,
  { environment, options = {} }: InProcess,
): Promise<Written> {
  const folder = await tempDir(ending);
  let [stdout, stderr] = ['', ''];
  const env = { SERVICE_CONFIG: path.join(folder, 'config.toml'), ...environment };
  const context: Context = {
    version: '0.0.0',
    program: ['strata'],
    environment: env,
    folder,
    terminal: createTerminal(
      { write: (text) => ((stdout += String(text)), true) },
      { write: (text) => ((stderr += String(text)), true) },
      env,
    ),
    globals: { json: false, debug: false, baseUrl: null, webUrl: null },
    readInput: async () => '',
    ask: null,
  };
  const given: Given = {
    argument: (name) => String(options[name]),
    optionalArgument: () => undefined,
    several: () => [],
    text: (name) => (typeof options[name] === 'string' ? options[name] : undefined),
    number: (name) => (typeof options[name] === 'number' ? options[name] : undefined),
    list: () => undefined,
    flag: (name) => options[name] === true,
  };
  const error: unknown = await run(context, given).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { error, stdout, stderr };
}
