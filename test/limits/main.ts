/** `npm run limits`: writes docs/limits.md. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectTree, ROOT } from '../architecture/source-tree.ts';
import { LIMIT_TESTS } from './judged.ts';
import { judge } from './judging.ts';
import { limitsPage } from './limits-page.ts';

const { judged, faults } = judge(projectTree(), LIMIT_TESTS);
writeFileSync(join(ROOT, 'docs/limits.md'), limitsPage(judged));
for (const fault of faults) console.error(fault);
console.log('docs/limits.md');
process.exitCode = faults.length === 0 ? 0 : 1;
