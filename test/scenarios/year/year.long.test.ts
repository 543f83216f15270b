/**
 * A year of a service, on a clock that the test moves: pushes, forced pushes, deletions, restorations, purges,
 * compactions, sweeps and an erasure in random order. Nothing inside the retention is ever gone, what has passed it is
 * refused by name, and at the end everything that verifies finds no fault. An oracle beside it knows what every moment
 * was.
 *
 * `STRATA_YEAR_SEED=<n>` repeats the choices of one run, `STRATA_YEAR_DAYS=<n>` sets how long the year is.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type TestContext, test } from 'vitest';
import { noteFigure } from '../../support/figures.ts';
import { createDice } from '../../support/seeded.ts';
import { admin, tryAdmin } from '../../support/strata.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { startYearService, type YearService } from './service.ts';
import { TURN_DAYS, Year } from './year.ts';

const DAYS = Number(process.env['STRATA_YEAR_DAYS'] ?? 365);
const SEED = Number(process.env['STRATA_YEAR_SEED'] ?? Date.now() % 2 ** 31);
const SET_CLOCK = path.resolve(import.meta.dirname, '../../support/set-clock.ts');

/** Runs the commands with which operators verify, at the service's time. */
async function assertVerified(context: TestContext, service: YearService): Promise<void> {
  const clockFile = path.join(await tempDir(context), 'ahead-ms');
  await writeFile(clockFile, String(service.aheadMs()));
  const env = { ...service.env, NODE_OPTIONS: `--import ${SET_CLOCK}`, TEST_CLOCK_FILE: clockFile };
  const { faults } = (await admin({ env }, ['log', 'verify', '--references'])) as { readonly faults: unknown };
  assert.deepEqual(faults, []);
  const rebuilt = await tryAdmin({ env }, ['--json', 'projections', 'rebuild', '--verify']);
  assert.equal(rebuilt.code, 0, rebuilt.stdout + rebuilt.stderr);
  const storage = (await admin({ env }, ['storage', 'verify'])) as {
    readonly faults: unknown;
    readonly unnamed: unknown;
  };
  assert.deepEqual([storage.faults, storage.unnamed], [[], []]);
}

test('A year keeps every moment of the retention whole, and lets go of what has passed it', {
  timeout: 120_000 + DAYS * 2_000,
}, async (context) => {
  const service = await startYearService(context);
  const year = await Year.begin(context, service, createDice(SEED));
  try {
    for (let turn = 1; turn * TURN_DAYS <= DAYS; turn += 1) await year.turn(turn);
    await year.end();
    await assertVerified(context, service);
    await year.assertExports();
    service.assertFaultless();
    noteFigure(context, `seed ${SEED}, ${DAYS} days: ${JSON.stringify(year.counts)}`);
  } catch (error) {
    throw new Error(`Repeat it with STRATA_YEAR_SEED=${SEED}`, { cause: error });
  }
});
