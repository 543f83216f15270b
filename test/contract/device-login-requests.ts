/** The contract of core/ports/device-login-requests.ts, and of its rows as those of a workflow, on every store. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { uuids } from '../../adapters/node/ids.ts';
import { type DeviceSessionId, plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { DEVICE_SESSION_KEPT_MS, DEVICE_SESSION_SPAN_MS } from '../../core/kernel/limits.ts';
import type { DeviceLoginRequests, DeviceRequestStep } from '../../core/ports/device-login-requests.ts';
import type { WaitingRows } from '../../core/ports/workflows.ts';

export type DeviceRequestStore = DeviceLoginRequests & WaitingRows<DeviceRequestStep>;

const START = timestamp('2026-11-21T10:00:00.000Z');

/** Declares the suite; `open` is called for each test. */
export function deviceLoginRequestsContract(
  store: string,
  open: (context: TestContext) => Promise<DeviceRequestStore>,
): void {
  describe(`requests of device logins on ${store}`, () => {
    test('are found with all that was added, until the device is forgotten', async (context) => {
      const requests = await open(context);
      const asked = newRequest({ hostname: 'a\u0000b 😀 \u202e<script>' });
      await requests.add(asked, bounds());
      const { network: _network, ...request } = asked;
      assert.deepEqual(await requests.find(asked.id), request);
      assert.equal(await requests.find(uuids.next<DeviceSessionId>()), null);
      await requests.forgetDevice(asked.id, plusMs(START, 5));
      assert.deepEqual(await requests.find(asked.id), { ...request, device: null });
      await requests.remove(asked.id);
      await requests.remove(asked.id);
      assert.equal(await requests.find(asked.id), null);
    });

    test('are found by their code until they expire, held or not', async (context) => {
      const requests = await open(context);
      const [first, second, other] = [
        newRequest({ after: 0 }),
        newRequest({ after: 1 }),
        newRequest({ code: 'BCDF-0000' }),
      ];
      for (const request of [second, first, other]) await requests.add(request, bounds());
      await requests.hold(first.id);
      assert.deepEqual(await requests.underCode('WXYZ-1234', START), [first.id, second.id]);
      assert.deepEqual(await requests.underCode('WXYZ-1234', first.expiresAt), [second.id]);
      await requests.forgetDevice(second.id, START);
      assert.deepEqual(await requests.underCode('WXYZ-1234', first.expiresAt), []);
    });

    test('give way at the bound, the oldest of the network that has most', async (context) => {
      const requests = await open(context);
      const alone = newRequest({ network: 'quiet', after: 0 });
      const crowd = [1, 2, 3].map((after) => newRequest({ network: 'loud', after }));
      for (const request of [alone, ...crowd]) await requests.add(request, bounds(4));
      assert.deepEqual(await there(requests, alone, ...crowd), [true, true, true, true]);
      const late = newRequest({ network: 'quiet', after: 4 });
      await requests.add(late, bounds(4));
      assert.deepEqual(await there(requests, alone, ...crowd, late), [true, false, true, true, true]);
      // Both networks have two now: the one that asked first gives way.
      await requests.add(newRequest({ network: 'third', after: 5 }), bounds(4));
      assert.deepEqual(await there(requests, alone, ...crowd, late), [false, false, true, true, true]);
    });

    test('count neither when they are held, nor when they expired, nor when they were forgotten', async (context) => {
      const requests = await open(context);
      const [held, forgotten, pending] = [newRequest(), newRequest(), newRequest()];
      for (const request of [held, forgotten, pending]) await requests.add(request, bounds());
      assert.equal(await requests.hold(held.id), true);
      await requests.forgetDevice(forgotten.id, plusMs(START, DEVICE_SESSION_SPAN_MS));
      await requests.add(newRequest({ after: 1 }), bounds(2));
      assert.deepEqual(await there(requests, held, forgotten, pending), [true, true, true]);
      await requests.add(newRequest({ after: 2 }), bounds(2));
      assert.deepEqual(await there(requests, held, forgotten, pending), [true, true, false]);
      await requests.add(newRequest({ after: DEVICE_SESSION_SPAN_MS + 2 }), bounds(1));
      assert.deepEqual(await there(requests, held, forgotten), [true, true]);
      assert.equal((await requests.earliest(10)).length, 5, 'expired ones stay');
    });

    test('cannot be held once they gave way', async (context) => {
      const requests = await open(context);
      const request = newRequest();
      await requests.add(request, bounds());
      await requests.add(newRequest({ after: 1 }), bounds(1));
      assert.equal(await requests.hold(request.id), false);
    });

    test('go at a later addition when they are long over and no engine removed them', async (context) => {
      const requests = await open(context);
      const old = newRequest();
      await requests.add(old, bounds());
      const keptSince = old.expiresAt;
      await requests.add(newRequest({ after: 1 }), { pendingMax: 10, keptSince });
      assert.deepEqual(await there(requests, old), [true], 'not yet');
      await requests.add(newRequest({ after: 2 }), { pendingMax: 10, keptSince: plusMs(keptSince, 1) });
      assert.deepEqual(await there(requests, old), [false]);
    });

    test('wait for the forgetting of their device, then for their removal', async (context) => {
      const requests = await open(context);
      const [first, second] = [newRequest({ after: 0 }), newRequest({ after: 1 })];
      for (const request of [second, first]) await requests.add(request, bounds());
      const timer = { id: first.id, step: 'forget-device', dueAt: first.expiresAt, revision: 0 };
      assert.deepEqual(await requests.earliest(1), [timer]);
      assert.deepEqual(await requests.waitOf(first.id), timer);
      const removeAt = plusMs(first.expiresAt, DEVICE_SESSION_KEPT_MS);
      await requests.forgetDevice(first.id, removeAt);
      await requests.forgetDevice(first.id, START);
      const removal = { id: first.id, step: 'remove', dueAt: removeAt, revision: 1 };
      assert.deepEqual(await requests.waitOf(first.id), removal);
      assert.deepEqual(
        (await requests.earliest(9)).map(({ id }) => id),
        [second.id, first.id],
      );
      await requests.remove(first.id);
      assert.equal(await requests.waitOf(first.id), null);
    });

    test('are told to an engine until they are marked as told to it', async (context) => {
      const requests = await open(context);
      const [first, second] = [newRequest({ after: 0 }), newRequest({ after: 1 })];
      for (const request of [first, second]) await requests.add(request, bounds());
      const untold = async (engine: string) => (await requests.untold(engine, 10)).map(({ id }) => id);
      assert.deepEqual(await untold('one'), [first.id, second.id]);
      assert.equal((await requests.untold('one', 1)).length, 1);
      await requests.markTold('one', [first.id, uuids.next()]);
      assert.deepEqual(await untold('one'), [second.id]);
      assert.deepEqual(await untold('two'), [first.id, second.id]);
    });
  });
}

const bounds = (pendingMax = 1_000) => ({ pendingMax, keptSince: plusMs(START, -DEVICE_SESSION_KEPT_MS) });

export interface Asked {
  readonly network?: string;
  readonly hostname?: string;
  readonly code?: string;
  /** Milliseconds after the first. */
  readonly after?: number;
}

export function newRequest({ network = 'home', hostname = 'laptop', code = 'WXYZ-1234', after = 0 }: Asked = {}) {
  const requestedAt: Timestamp = plusMs(START, after);
  return {
    id: uuids.next<DeviceSessionId>(),
    secretHash: 'a'.repeat(64),
    requestedAt,
    expiresAt: plusMs(requestedAt, DEVICE_SESSION_SPAN_MS),
    device: { userCode: code, hostname, address: '203.0.113.7' },
    network,
  };
}

async function there(
  requests: Pick<DeviceLoginRequests, 'find'>,
  ...asked: readonly { readonly id: DeviceSessionId }[]
): Promise<readonly boolean[]> {
  return Promise.all(asked.map(async ({ id }) => (await requests.find(id)) !== null));
}
