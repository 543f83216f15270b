/**
 * The commands of `npm run check`. test/architecture/tools.test.ts runs the same commands on samples that they must
 * refuse.
 *
 * Invariants: every tool reads its settings from the folder it runs in, and none from these arguments.
 */
import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Node's arguments for `npm test`, without the words that choose test files. */
export const VITEST = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--configLoader=native',
  '--config=test/vitest/config.ts',
];

export interface Check {
  readonly name: string;
  /** An executable; for a tool of node_modules its path below the project's folder. */
  readonly command: string;
  readonly args: readonly string[];
}

/** One compiler run for each tsconfig.json, whose settings limit what its folder may use. */
function typeChecks(root: string): Check[] {
  const exclude = ['**/node_modules/**', 'test/architecture/samples/**'];
  const configs = globSync('**/tsconfig.json', { cwd: root, exclude });
  return configs.sort().map((config) => {
    const name = config === 'tsconfig.json' ? 'types' : `types of ${dirname(config)}`;
    return { name, command: join('node_modules', '.bin', 'tsc'), args: ['-p', config, '--pretty', 'false'] };
  });
}

/** Returns every check of a project; the caller runs them in `root`. */
export function checksOf(root: string): Check[] {
  const tool = (name: string) => join('node_modules', '.bin', name);
  return [
    ...typeChecks(root),
    { name: 'lint', command: tool('oxlint'), args: ['--format=unix'] },
    { name: 'format', command: tool('biome'), args: ['check', '--colors=off'] },
    { name: 'dead code', command: tool('knip'), args: ['--no-progress', '--no-config-hints'] },
    {
      name: 'architecture',
      command: process.execPath,
      args: [...VITEST, 'test/architecture', 'test/limits', 'test/metrics'],
    },
  ];
}
