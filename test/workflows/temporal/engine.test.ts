/** The engine on Temporal where there is no Temporal. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createMemoryPolicyMarks } from '../../../adapters/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../../adapters/memory/event-store.ts';
import { startTemporalEngine } from '../../../workflows/temporal/engine.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { until } from '../../support/read-models.ts';
import { createTestClock } from '../../support/test-clock.ts';

/** A port where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('No port');
  server.close();
  await once(server, 'close');
  return address.port;
}

function start(context: TestContext, port: number) {
  const clock = createTestClock();
  const faults: string[] = [];
  const engine = startTemporalEngine({
    workflows: [],
    events: createMemoryEventStore(),
    lead: { whenever: () => async () => undefined },
    marks: createMemoryPolicyMarks(),
    ...{ clock, alarm: clock, log: keepLog() },
    onFault: (what) => faults.push(what),
    address: `127.0.0.1:${port}`,
    namespace: 'default',
  });
  cleanUp(context, () => engine.close());
  return { engine, clock, faults };
}

test('an engine that Temporal does not answer says so, goes on, and ends when asked', async (context) => {
  const { engine, clock, faults } = start(context, await closedPort());
  await until(() => faults.includes('temporal'));
  assert.deepEqual(engine.state(), { reachable: false, since: clock.now(), behind: null });
  await engine.close();
});
