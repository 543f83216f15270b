/** The contract of workflows whose runs wait in rows (core/ports/workflows.ts), run on every engine. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { type DeviceSessionId, plusMs } from '../../core/kernel/ids.ts';
import { DEVICE_SESSION_KEPT_MS, DEVICE_SESSION_SPAN_MS } from '../../core/kernel/limits.ts';
import { carriedOut, type Workflow } from '../../core/ports/workflows.ts';
import { deviceRequest } from '../../workflows/device-request/logic.ts';
import { createDeviceRequestSteps } from '../../workflows/device-request/steps.ts';
import { createMemoryDeviceLoginRequests } from '../support/memory/device-login-requests.ts';
import { until } from '../support/read-models.ts';
import type { OpenWorkflows } from './workflows.ts';

/** Engines always have workflows on streams as well. */
const onStreams: Workflow = { name: 'idle', version: 1, category: 'idle', next: () => null };
/** Longer than an engine may take to look for new rows. */
const LOOK_MS = 60_000;

/** Declares the suite; `open` is called for each test. */
export function rowWorkflowsContract(engine: string, open: (context: TestContext) => Promise<OpenWorkflows>): void {
  describe(`workflows on rows on ${engine}`, () => {
    test('carry out each step at its time, and not before', async (context) => {
      const { add, clock, requests, work, isTold } = newRows(await open(context));
      const id = await add();
      await work();
      await isTold();
      clock.advance(DEVICE_SESSION_SPAN_MS - 1);
      assert.notEqual((await requests.find(id))?.device, null);
      clock.advance(1);
      await until(async () => (await requests.find(id))?.device === null);
      clock.advance(DEVICE_SESSION_KEPT_MS - 1);
      assert.notEqual(await requests.find(id), null);
      clock.advance(1);
      await until(async () => (await requests.find(id)) === null);
    });

    test('carry out steps that came due while no worker ran, and do nothing for a row that went', async (context) => {
      const { add, clock, requests, work } = newRows(await open(context));
      const [gone, kept] = [await add(), await add()];
      const worker = await work();
      await requests.remove(gone);
      await worker.stop();
      clock.advance(DEVICE_SESSION_SPAN_MS);
      await work();
      await until(async () => (await requests.find(kept))?.device === null);
      assert.equal(await requests.find(gone), null);
    });

    test('find a row that was added while they wait for nothing', async (context) => {
      const { add, clock, requests, work, isTold } = newRows(await open(context));
      await work();
      await isTold();
      const id = await add();
      clock.advance(LOOK_MS);
      await isTold();
      clock.advance(DEVICE_SESSION_SPAN_MS - LOOK_MS);
      await until(async () => (await requests.find(id))?.device === null);
    });
  });
}

function newRows({ clock, start }: OpenWorkflows) {
  const requests = createMemoryDeviceLoginRequests();
  let isRead = false;
  const rows: typeof requests = {
    ...requests,
    earliest: async (limit) => {
      isRead = true;
      return requests.earliest(limit);
    },
    markTold: async (engine, ids) => {
      isRead = true;
      await requests.markTold(engine, ids);
    },
    untold: async (engine, limit) => {
      const untold = await requests.untold(engine, limit);
      if (untold.length === 0) isRead = true;
      return untold;
    },
  };
  return {
    clock,
    requests,
    add: async (): Promise<DeviceSessionId> => {
      const id = uuids.next<DeviceSessionId>();
      const requestedAt = clock.now();
      const device = { hostname: 'laptop', address: '', userCode: 'WXYZ-1234' };
      const expiresAt = plusMs(requestedAt, DEVICE_SESSION_SPAN_MS);
      const request = { id, secretHash: 'a', requestedAt, expiresAt, network: 'home', device };
      await requests.add(request, { pendingMax: 100, keptSince: requestedAt });
      isRead = false;
      return id;
    },
    /** Resolves when the engine has looked at the rows since the last one was added. */
    isTold: () => until(() => isRead),
    work: () =>
      start([
        carriedOut(onStreams, {}),
        carriedOut(deviceRequest(rows), createDeviceRequestSteps({ deviceRequests: requests })),
      ]),
  };
}
