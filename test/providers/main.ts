/**
 * `npm run providers`: what the service does in buckets of other providers of S3, each played between it and a real
 * S3 server. `npm run providers -- R2 Garage` tries those alone. docs/operating.md has the table that it prints.
 *
 * Invariants: servers and databases are made for the run and removed after it. It exits with 0 only if no cell failed
 * and at least one provider was tried.
 */
import { cleanUp } from '../support/cleanup.ts';
import { isThere } from '../support/optional-suites.ts';
import { createOwnEnding } from '../support/own-ending.ts';
import { startTestCluster } from '../support/postgres.ts';
import { chooseTestGit } from '../support/test-git.ts';
import { renderProviders } from './cells.ts';
import { tryProviders } from './matrix.ts';
import { PROVIDERS } from './rows.ts';

async function main(words: readonly string[]): Promise<number> {
  chooseTestGit();
  const chosen = PROVIDERS.filter(
    ({ name }) => words.length === 0 || words.some((word) => name.toLowerCase().includes(word.toLowerCase())),
  );
  if (chosen.length === 0) {
    process.stderr.write(`No provider is named so; there are ${PROVIDERS.map(({ name }) => name).join('; ')}\n`);
    return 2;
  }
  if (!isThere('versitygw')) {
    process.stderr.write('The program versitygw is not installed: .ci/s3-tools.sh builds it\n');
    return 2;
  }
  const { ending, end } = createOwnEnding();
  try {
    const cluster = await startTestCluster();
    cleanUp(ending, () => cluster.stop());
    process.env['STRATA_TEST_POSTGRES'] = cluster.connectionString;
    const rows = await tryProviders(ending, chosen);
    process.stdout.write(renderProviders(rows));
    const failed = rows.flatMap(({ provider, cells }) =>
      cells.flatMap((cell) => (cell.is === 'failed' ? [`\nFAILED ${provider}: ${cell.why}\n`] : [])),
    );
    process.stdout.write(failed.join(''));
    return failed.length === 0 ? 0 : 1;
  } finally {
    await end();
  }
}

process.exitCode = await main(process.argv.slice(2));
