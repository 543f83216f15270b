import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { noteFigure } from '../../support/figures.ts';
import { runWorld } from '../../support/lease-world.ts';

const SCHEDULES = Number(process.env['STRATA_LEASE_SCHEDULES'] ?? 400);

describe('Processes that answer from memory under read leases', () => {
  test('never miss an acknowledged append, nor what anybody has read before', async (context) => {
    let [reads, fromMemory, appends] = [0, 0, 0];
    for (let seed = 1; seed <= SCHEDULES; seed += 1) {
      const report = await runWorld({ seed });
      assert.equal(report.violation, null, `seed ${seed}`);
      reads += report.reads;
      fromMemory += report.fromMemory;
      appends += report.appends;
    }
    noteFigure(
      context,
      `read leases: ${SCHEDULES} schedules, ${appends} appends, ${reads} reads, ${fromMemory} from memory`,
    );
    assert.ok(fromMemory > reads / 20, `${fromMemory} of ${reads} reads asked nobody`);
  });
});
