/**
 * Where Temporal's programs for tests are: `.ci/temporal-tools.sh` installs them.
 *
 * Must stay true: nothing is downloaded by a test; one that finds no program is skipped by name.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

/**
 * - `temporal`: the CLI, whose `server start-dev` is a real server;
 * - `temporal-test-server`: a server whose clock tests move, started with a port.
 */
export type TemporalTool = 'temporal' | 'temporal-test-server';

/** The tool's path, on the search path or in the folder of tools; null where it is not installed. */
export function findTemporalTool(
  tool: TemporalTool,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): string | null {
  const own = environment['STRATA_TOOLS_DIR'] ?? path.join(homedir(), '.cache', 'strata-tools');
  const folders = [...(environment['PATH'] ?? '').split(path.delimiter), own];
  const places = folders.filter((folder) => folder !== '').map((folder) => path.join(folder, tool));
  return places.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // Whatever the reason, it cannot be run.
    return false;
  }
}
