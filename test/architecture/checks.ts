/**
 * The tools `npm run check` runs, and how. Shared with the test that feeds each of them what it must refuse,
 * so that the command proven there is the command run.
 *
 * Must stay true: every tool reads its settings from the folder it runs in, none from these arguments.
 */
import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Check {
  readonly name: string;
  /** An executable; tools of node_modules by their path below the folder. */
  readonly command: string;
  readonly args: readonly string[];
}

/** One compiler run a tsconfig.json: a folder's own settings hold what it may use. */
function typeChecks(root: string): Check[] {
  const exclude = ['**/node_modules/**', 'test/architecture/samples/**'];
  const configs = globSync('**/tsconfig.json', { cwd: root, exclude });
  return configs.sort().map((config) => {
    const name = config === 'tsconfig.json' ? 'types' : `types of ${dirname(config)}`;
    return { name, command: join('node_modules', '.bin', 'tsc'), args: ['-p', config, '--pretty', 'false'] };
  });
}

/** Every check of a project at `root`, to be run there. */
export function checksOf(root: string): Check[] {
  const tool = (name: string) => join('node_modules', '.bin', name);
  return [
    ...typeChecks(root),
    { name: 'lint', command: tool('oxlint'), args: ['--format=unix'] },
    { name: 'format', command: tool('biome'), args: ['format', '--colors=off'] },
    { name: 'dead code', command: tool('knip'), args: ['--no-progress', '--no-config-hints'] },
    {
      name: 'architecture',
      command: process.execPath,
      args: ['--test', '--test-reporter=dot', 'test/architecture/*.test.ts'],
    },
  ];
}
