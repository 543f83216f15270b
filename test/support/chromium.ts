/**
 * Finds the Chromium that drives the tests of the website.
 *
 * Invariants: a test downloads nothing; without a browser the suites that need one are skipped with that reason.
 */
import { accessSync, constants } from 'node:fs';
import path from 'node:path';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** Returns the browser's path: `STRATA_CHROMIUM`, or else the first one on the search path; null if there is none. */
export function findChromium(environment: Readonly<Record<string, string | undefined>> = process.env): string | null {
  const chosen = environment['STRATA_CHROMIUM'] ?? '';
  if (chosen !== '') return isExecutable(chosen) ? chosen : null;
  const folders = [...(environment['PATH'] ?? '').split(path.delimiter), '/usr/bin'].filter((folder) => folder !== '');
  return NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name))).find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    // Whatever the error, the file cannot be executed.
    return false;
  }
}
