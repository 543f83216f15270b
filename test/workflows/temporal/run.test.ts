/** Runs in Temporal, on its test server: behaviour that the contract of engines does not cover. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { streamName } from '../../../core/kernel/envelope.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { carriedOut, type Workflow } from '../../../core/ports/workflows.ts';
import { newEvent, newId } from '../../support/events.ts';
import { needs } from '../../support/optional-suites.ts';
import { until } from '../../support/read-models.ts';
import { openOnTemporal } from '../../support/temporal-workflows.ts';

const HOUR_MS = 3_600_000;
/** Each of these adds a dozen events to its run's history. */
const EVENTS = 45;

function waiting(name: string, spanMs: number): Workflow {
  return {
    name,
    version: 1,
    category: name,
    next: (_wait, { occurredAt }) => ({ step: 'go', dueAt: plusMs(occurredAt, spanMs), memory: {} }),
  };
}

describe("runs on Temporal's test server", needs('temporal-test-server'), () => {
  test('a run that receives many events continues in a new history', async (context) => {
    const { events, clock, start, waitsUntil, historyOf } = await openOnTemporal(context);
    const stream = streamName('moving', newId());
    const id = stream.slice('moving-'.length);
    const begun = clock.now();
    let steps = 0;
    await start([carriedOut(waiting('moving', HOUR_MS), { go: async () => void (steps += 1) })]);
    for (let length = 0; length < EVENTS; length += 1) {
      const occurredAt = plusMs(begun, length);
      const expected = length === 0 ? 'none' : length - 1;
      await events.append({ stream, expected, events: [newEvent({ type: 'Noted', occurredAt })] });
      await waitsUntil(plusMs(occurredAt, HOUR_MS));
    }
    // A signal that arrives at that moment delays the new history.
    await until(async () => (await historyOf(id)).includes('"continuedExecutionRunId"'));
    await waitsUntil(plusMs(begun, HOUR_MS + EVENTS - 1));
    clock.advance(HOUR_MS + EVENTS);
    await until(() => steps > 0);
  });

  test('slow steps of one workflow delay no step of another', async (context) => {
    const { events, clock, start } = await openOnTemporal(context);
    const done: string[] = [];
    const hanging = new Promise<void>(() => undefined);
    const slow = carriedOut(waiting('slow', 0), {
      go: async ({ id }) => {
        done.push(id);
        await hanging;
      },
    });
    const quick = carriedOut(waiting('quick', 0), { go: async ({ id }) => void done.push(id) });
    await start([slow, quick], 1);
    const begin = async (category: string): Promise<string> => {
      const id = newId();
      const event = newEvent({ type: 'Begun', occurredAt: clock.now() });
      await events.append({ stream: streamName(category, id), expected: 'none', events: [event] });
      return id;
    };
    const hung = await begin('slow');
    await until(() => done.includes(hung));
    const behind = await begin('slow');
    const other = await begin('quick');
    await until(() => done.includes(other));
    assert.ok(!done.includes(behind), 'the limit of concurrent steps holds');
  });
});
