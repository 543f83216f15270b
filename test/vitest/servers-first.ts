/** Runs files that start whole servers first: they take longest, and the last one should not run alone at the end. */
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { ROOT } from '../architecture/source-tree.ts';
import { reaches, readImports } from './imported-modules.ts';

const STARTS_SERVERS = 'test/support/strata.ts';

export class ServersFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const importsOf = readImports();
    const inOrder = files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
    const startsServers = ({ moduleId }: TestSpecification): boolean =>
      reaches(importsOf, relative(ROOT, moduleId), STARTS_SERVERS);
    const { servers = [], others = [] } = Object.groupBy(inOrder, (file) =>
      startsServers(file) ? 'servers' : 'others',
    );
    return [...servers, ...others];
  }
}
