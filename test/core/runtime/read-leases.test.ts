import assert from 'node:assert/strict';
import { describe, test, vi } from 'vitest';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import type { Lease } from '../../../core/ports/read-leases.ts';
import { createReadLeases, type ReadLeases } from '../../../core/runtime/read-leases.ts';
import { createSettledLog } from '../../../core/runtime/settled-log.ts';
import { newStream } from '../../support/events.ts';
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
    await beside(DEAD, async ({ leases }) => {
      leases.hear(7n as LogPosition, null);
      await vi.advanceTimersByTimeAsync(990);
      assert.equal(leases.settled(), LOG_START);
      await vi.advanceTimersByTimeAsync(10);
      assert.equal(leases.settled(), 7n);
    });
  });

  test('remove the row of a silent holder only when its span has passed since they read the row', async () => {
    await beside({ ...DEAD, readAfterMs: 500 }, async ({ leases, removed }) => {
      leases.hearOwn(7n as LogPosition, null);
      await vi.advanceTimersByTimeAsync(100);
      // A later append waits for the same row: it does not put the removal off.
      leases.hearOwn(8n as LogPosition, null);
      await vi.advanceTimersByTimeAsync(1000);
      assert.equal(leases.settled(), 8n);
      await vi.advanceTimersByTimeAsync(390);
      assert.deepEqual(removed, []);
      await vi.advanceTimersByTimeAsync(10);
      assert.deepEqual(
        removed.map(({ node }) => node),
        ['dead'],
      );
    });
  });

  test('do not know the outcome of an append when they end before it is settled', async () => {
    await beside(DEAD, async ({ leases }) => {
      leases.hearOwn(7n as LogPosition, null);
      const refused = assert.rejects(async () => leases.whenSettled(7n as LogPosition), UNKNOWN);
      await leases.close();
      await refused;
      await assert.rejects(async () => leases.whenSettled(7n as LogPosition), UNKNOWN);
    });
  });

  test('do not know the outcome of an append when the log has lost its end', async () => {
    await beside(DEAD, async ({ leases }) => {
      leases.hearOwn(7n as LogPosition, null);
      const refused = assert.rejects(async () => leases.whenSettled(7n as LogPosition), UNKNOWN);
      leases.forget(6n as LogPosition);
      await refused;
    });
  });

  test('read nothing that is not settled when they end, which is an outage of the log and no append', async () => {
    await beside(DEAD, async ({ leases }) => {
      const unused = (): never => assert.fail('Not called');
      const append = async () => ({ outcome: 'appended', revision: 0, position: 8n as LogPosition }) as const;
      const head = async () => 7n as LogPosition;
      const events = { append, head, readStream: unused, readAll: unused, subscribe: unused };
      const log = createSettledLog(events, leases);
      const read = assert.rejects(log.head(), { code: 'log-unavailable' });
      const appended = assert.rejects(log.append({ stream: newStream(), expected: 'none', events: [] }), UNKNOWN);
      await vi.advanceTimersByTimeAsync(10);
      await leases.close();
      await Promise.all([read, appended]);
    });
  });
});

const UNKNOWN = { code: 'append-outcome-unknown' };

const DEAD: Lease & { readonly readAfterMs: number } = {
  node: 'dead',
  epoch: 1,
  renewals: 3,
  heard: LOG_START,
  spanMs: 1000,
  life: 1,
  readAfterMs: 0,
};

interface Beside {
  readonly leases: ReadLeases;
  readonly removed: readonly Lease[];
}

/** Runs `run` on a process that reads the other's row, in simulated time. */
async function beside({ readAfterMs, ...other }: typeof DEAD, run: (parts: Beside) => Promise<void>): Promise<void> {
  vi.useFakeTimers();
  const removed: Lease[] = [];
  const leases = createReadLeases({
    node: 'living',
    table: {
      insert: async () => 2,
      renew: async () => true,
      remove: async (lease) => void removed.push(lease),
      giveUp: async () => undefined,
      rows: () => new Promise((resolve) => void setTimeout(() => resolve([other]), readAfterMs)),
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
  try {
    await run({ leases, removed });
    await leases.close();
  } finally {
    vi.useRealTimers();
  }
}
