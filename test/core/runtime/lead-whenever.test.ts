/** The loop of work that only the leader does. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { HeldLead } from '../../../core/ports/lead.ts';
import { type LeadWheneverOptions, leadWhenever } from '../../../core/runtime/lead-whenever.ts';

const STANDBY_MS = 7;

/** Runs the loop; each call of `take` gets the next of `leads`, and after the last the loop ends. */
function loop(leads: readonly ('lead' | 'none' | Error)[], work: LeadWheneverOptions<string>['work']) {
  const ending = new AbortController();
  const pauses: number[] = [];
  const faults: unknown[] = [];
  const released: number[] = [];
  let taken = 0;
  const held = (number: number): HeldLead<string> => ({
    connection: `lead ${number}`,
    lost: new AbortController().signal,
    release: () => void released.push(number),
  });
  const running = leadWhenever<string>({
    take: async () => {
      const next = leads[taken];
      taken += 1;
      if (taken >= leads.length) ending.abort();
      if (next instanceof Error) throw next;
      return next === 'lead' ? held(taken) : null;
    },
    work,
    standbyMs: STANDBY_MS,
    pause: async (ms) => void pauses.push(ms),
    onFault: (cause) => faults.push(cause),
    signal: ending.signal,
  });
  return { running, pauses, faults, released };
}

describe('A node that tries to lead', () => {
  const broken = new Error('The database is away');

  test('tries again after a pause while another node leads', async () => {
    const { running, pauses, faults } = loop(['none', 'none', 'none'], async () => assert.fail('It does not lead'));
    await running;
    assert.deepEqual([pauses, faults], [[STANDBY_MS, STANDBY_MS, STANDBY_MS], []]);
  });

  test('works on the connection of the lead, and releases the lead when the work has ended', async () => {
    const worked: string[] = [];
    const { running, released } = loop(['lead', 'lead', 'none'], async ({ connection }) => {
      worked.push(connection);
    });
    await running;
    assert.deepEqual(
      [worked, released],
      [
        ['lead 1', 'lead 2'],
        [1, 2],
      ],
    );
  });

  test('releases the lead when the work fails, reports the error, and retries with backoff', async () => {
    const { running, pauses, faults, released } = loop(['lead', 'lead', 'lead', 'none'], async () => {
      throw broken;
    });
    await running;
    assert.deepEqual([faults, released], [Array(3).fill(broken), [1, 2, 3]]);
    assert.deepEqual(pauses, [50, 100, 200, STANDBY_MS]);
  });

  test('retries when taking the lead fails, with pauses of 5 seconds at most', async () => {
    const { running, pauses, faults } = loop([...Array<Error>(9).fill(broken), 'none'], async () => undefined);
    await running;
    assert.equal(faults.length, 9);
    assert.deepEqual(pauses.slice(-4), [3_200, 5_000, 5_000, STANDBY_MS]);
  });

  test('starts the backoff again after work that succeeded before it failed', async () => {
    const { running, pauses } = loop(['lead', 'lead', 'lead', 'none'], async (_held, onWorking) => {
      onWorking();
      throw broken;
    });
    await running;
    assert.deepEqual(pauses, [50, 50, 50, STANDBY_MS]);
  });

  test('reports no error after the signal is aborted', async () => {
    const { running, faults, released } = loop(['lead'], async () => {
      throw broken;
    });
    await running;
    assert.deepEqual([faults, released], [[], [1]]);
  });
});
