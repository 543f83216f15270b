/**
 * Starts what all test files of a run share: a PostgreSQL server, and a data directory with a prepared cluster.
 *
 * Invariants: nothing is started unless a test file imports a module that uses it; a part that the caller's
 * environment names is used instead of a new one.
 */
import { relative } from 'node:path';
import type { TestProject } from 'vitest/node';
import { ROOT } from '../architecture/source-tree.ts';
import { reaches, readImports } from './imported-modules.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The environment variables to set in each test file's process. */
    sharedParts: Readonly<Record<string, string>>;
  }
}

/** A part is started when a test file imports its module; later parts use earlier ones. */
interface SharedPart {
  readonly variable: string;
  readonly module: string;
  readonly start: () => Promise<{ readonly value: string; readonly end: () => Promise<void> }>;
}

const PARTS: readonly SharedPart[] = [
  {
    variable: 'STRATA_TEST_MADE_DATA_DIR',
    module: 'test/support/made-data-dir.ts',
    start: async () => {
      const { makeDataDir } = await import('../support/made-data-dir.ts');
      const { dataDir, remove } = await makeDataDir();
      return { value: dataDir, end: remove };
    },
  },
  {
    variable: 'STRATA_TEST_POSTGRES',
    module: 'test/support/postgres.ts',
    start: async () => {
      const { startTestCluster } = await import('../support/postgres.ts');
      const { connectionString, stop } = await startTestCluster();
      return { value: connectionString, end: stop };
    },
  },
];

/** Vitest calls this before the first file. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const files = project.vitest.state.getPaths().map((file) => relative(ROOT, file));
  const importsOf = readImports();
  const ends: (() => Promise<void>)[] = [];
  const values: Record<string, string> = {};
  for (const { variable, module, start } of PARTS) {
    if (process.env[variable] !== undefined || !files.some((file) => reaches(importsOf, file, module))) continue;
    const { value, end } = await start();
    // Later parts read it from the environment.
    process.env[variable] = value;
    values[variable] = value;
    ends.unshift(end);
  }
  project.provide('sharedParts', values);
  return async () => {
    for (const end of ends) await end();
  };
}
