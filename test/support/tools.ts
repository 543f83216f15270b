/**
 * Finds the programs that tests run against, which the scripts `.ci/*-tools.sh` install.
 *
 * Invariants: a test downloads nothing; a test that finds no program is skipped with that reason.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';

/**
 * The programs:
 * - `temporal`: the CLI, whose `server start-dev` is a real server;
 * - `temporal-test-server`: a server whose clock a test moves; its argument is a port;
 * - `versitygw`: a server of S3 on a folder;
 * - `promtool`: checks rules of Prometheus, and evaluates them;
 * - `pg_dump-18`: a link to the program of that version, beside which pg_restore is.
 */
export type Tool = 'temporal' | 'temporal-test-server' | 'versitygw' | 'promtool' | 'pg_dump-18';

/** Returns the program's path, from the search path or the tools' folder; null when it is not installed. */
export function findTool(
  tool: Tool,
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
    // Whatever the error, the file cannot be executed.
    return false;
  }
}
