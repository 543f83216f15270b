import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import type { Lease } from '../../../core/ports/read-leases.ts';
import { createReadLeases } from '../../../core/runtime/read-leases.ts';
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

  test('wait for a silent holder no longer than its span, though its row was read after the append', async () => {
    vi.useFakeTimers();
    try {
      const dead: Lease = { node: 'dead', epoch: 1, renewals: 3, heard: LOG_START, spanMs: 1000 };
      const leases = createReadLeases({
        node: 'living',
        table: {
          insert: async () => 2,
          renew: async () => true,
          remove: async () => undefined,
          giveUp: async () => undefined,
          rows: async () => [dead],
          tell: async () => undefined,
          listen: () => ({ close: async () => undefined }),
        },
        head: async () => LOG_START,
        holds: false,
        spanMs: 1000,
        clock: {
          monotonicMs: () => Date.now(),
          wallMs: () => Date.now(),
          after: (ms, call) => {
            const timer = setTimeout(call, ms);
            return () => clearTimeout(timer);
          },
        },
        onFault: (cause) => assert.fail(String(cause)),
      });
      leases.hear(7n as LogPosition, null);
      await vi.advanceTimersByTimeAsync(990);
      assert.equal(leases.settled(), LOG_START);
      await vi.advanceTimersByTimeAsync(10);
      assert.equal(leases.settled(), 7n);
      await leases.close();
    } finally {
      vi.useRealTimers();
    }
  });
});
