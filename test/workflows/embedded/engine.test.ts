/** What the embedded engine keeps in memory; its behaviour is in test/contract/workflows.ts. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { streamName } from '../../../core/kernel/envelope.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { carriedOut, type Timer, type Workflow } from '../../../core/ports/workflows.ts';
import { startEmbeddedEngine } from '../../../workflows/embedded/engine.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newId } from '../../support/events.ts';
import { heldBySignal } from '../../support/held-by-signal.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { until } from '../../support/read-models.ts';
import { createTestClock } from '../../support/test-clock.ts';

const waiting: Workflow = { name: 'waiting', version: 1, category: 'waiting', next: () => null };
const TURNS = 50;

test('An engine that was woken by many events holds no more of the signal that ends it than after the first', async (context) => {
  const events = createMemoryEventStore();
  const clock = createTestClock();
  const ending = new AbortController();
  const timer: Timer = { id: newId(), revision: 0, step: 'go', dueAt: plusMs(clock.now(), 60_000) };
  let turns = 0;
  const stop = startEmbeddedEngine({
    workflows: [carriedOut(waiting, {})],
    ...{ events, clock, alarm: clock },
    timers: {
      caughtUp: async () => undefined,
      earliest: async () => {
        turns += 1;
        return [timer];
      },
    },
    lead: {
      whenever: (_name, work) => {
        const working = work(ending.signal);
        return async () => {
          ending.abort();
          await working;
        };
      },
    },
    onFault: (_workflow, cause) => assert.fail(String(cause)),
  });
  cleanUp(context, stop);
  const wake = async (): Promise<void> => {
    const before = turns;
    await events.append({ stream: streamName('waiting', newId()), expected: 'none', events: [newEvent()] });
    await until(() => turns > before);
  };
  await wake();
  const held = heldBySignal(ending.signal);
  for (let turn = 0; turn < TURNS; turn += 1) await wake();
  assert.ok(turns >= TURNS);
  assert.equal(heldBySignal(ending.signal), held);
  assert.ok(clock.awaited().length <= 1);
});
