/**
 * Runs files that start whole servers first, and those that take minutes before them: the last one should not run alone
 * at the end.
 */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ROOT } from '../architecture/source-tree.ts';
import { reaches, readImports } from './imported-modules.ts';

const STARTS_SERVERS = 'test/support/strata.ts';

/** Those that take more than three minutes where everything runs, the longest first. */
export const LONGEST_FIRST: readonly string[] = [
  'test/scenarios/bucket-alone.long.test.ts',
  'test/scenarios/moving-cut-short.long.test.ts',
  'test/scenarios/sweep-crash.long.test.ts',
  'test/scenarios/bucket-crash.long.test.ts',
  'test/scenarios/temporal.long.test.ts',
  'test/alerts/alert-drill.long.test.ts',
  'test/security/attacks/held-bodies.long.test.ts',
  'test/scenarios/random-commits.test.ts',
  'test/apps/verifier/two-verifiers.test.ts',
];

export class ServersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // Vitest gives all files to one worker that is alone, and with it to one process.
    if (this.ctx.config.maxWorkers === 1 && files.length > 1) throw new Error('Too few workers: use --maxWorkers 2');
    const importsOf = readImports();
    const inOrder = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST_FIRST.indexOf(relative(ROOT, moduleId));
      if (at !== -1) return at;
      return LONGEST_FIRST.length + (reaches(importsOf, relative(ROOT, moduleId), STARTS_SERVERS) ? 0 : 1);
    };
    return inOrder
      .map((file) => ({ file, rank: rank(file) }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ file }) => file);
  }
}
