/** `npm run metrics`: writes docs/metrics.md. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../architecture/source-tree.ts';
import { productSources } from '../architecture/syntax.ts';
import { metricsOf } from './found-metrics.ts';
import { metricsPage } from './metrics-page.ts';

writeFileSync(join(ROOT, 'docs/metrics.md'), metricsPage(metricsOf(productSources())));
console.log('docs/metrics.md');
