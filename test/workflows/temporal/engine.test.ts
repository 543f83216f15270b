/** The engine on Temporal without a server that answers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'vitest';
import { pause } from '../../../adapters/node/pause.ts';
import { startTemporalEngine } from '../../../workflows/temporal/engine.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { keepLog } from '../../support/log.ts';
import { createMemoryPolicyMarks } from '../../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { until } from '../../support/read-models.ts';
import { createTestClock } from '../../support/test-clock.ts';

/** Returns a port on which no process listens. */
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
    ...{ clock, alarm: clock, pause, log: keepLog() },
    onFault: (what) => faults.push(what),
    address: `127.0.0.1:${port}`,
    namespace: 'default',
  });
  cleanUp(context, () => engine.close());
  return { engine, clock, faults };
}

test('an engine that Temporal does not answer reports a fault, keeps trying, and closes', async (context) => {
  const { engine, clock, faults } = start(context, await closedPort());
  await until(() => faults.includes('temporal'));
  assert.deepEqual(engine.state(), { reachable: false, since: clock.now(), behind: null });
  await engine.close();
});

test('an engine whose server accepts calls and never answers still closes', async (context) => {
  const lines = new Set<Socket>();
  const silent = createServer((line) => lines.add(line)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  cleanUp(context, () => {
    silent.close();
    for (const line of lines) line.destroy();
  });
  const address = silent.address();
  if (address === null || typeof address === 'string') throw new TypeError('No port');
  const { engine } = start(context, address.port);
  await until(() => lines.size > 0);
  await engine.close();
  assert.ok(
    [...lines].some((line) => !line.destroyed),
    'the server still does not answer',
  );
});
