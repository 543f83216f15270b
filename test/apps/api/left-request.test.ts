/** What is recorded of a REST request whose client left: nothing failed here, so no operator is to be called. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyError, FastifyRequest } from 'fastify';
import { describe, test } from 'vitest';
import { faultAnswer } from '../../../apps/api/faults.ts';
import { closedSignal } from '../../../apps/front-door/closed-signal.ts';
import { createFairSlots } from '../../../core/kernel/fair-slots.ts';

/** A request that arrived as a whole. */
const REQUEST = {
  id: 'r',
  raw: { errored: null, socket: new Socket() },
  routeOptions: { config: {} },
} as unknown as FastifyRequest;

function answerTo(error: unknown): { readonly status: number; readonly logged: readonly string[] } {
  const logged: string[] = [];
  const note = (_: object, message: string): void => void logged.push(message);
  const log = { debug: note, info: note, warn: note, error: note };
  const { status } = faultAnswer({ log, onDiverged: () => undefined }, error as FastifyError, REQUEST);
  return { status, logged };
}

/** The signal of a request, and the end of its connection. */
function connection(): { readonly signal: AbortSignal; readonly leave: () => void } {
  const response = Object.assign(new EventEmitter(), { writableFinished: false }) as unknown as ServerResponse;
  return { signal: closedSignal(response), leave: () => void response.emit('close') };
}

describe('A request whose client leaves', () => {
  // The attack: an account sends purges, of which it has one at a time, and leaves. Each one that waited showed as an
  // internal error with its stack, among which no real one would be seen.
  test('while it waits for its turn is not recorded as an internal error', async () => {
    const slots = createFairSlots({ slots: 1, slotsPerKey: 1 });
    slots.take('ada');
    const { signal, leave } = connection();
    const turn = slots.acquire('ada', signal).catch((error: unknown) => error);
    leave();
    assert.deepEqual(answerTo(await turn), { status: 400, logged: [] });
  });

  test('while a library works for it is not recorded as one either', () => {
    const { signal, leave } = connection();
    leave();
    const aborted = Object.assign(new Error('The operation was aborted', { cause: signal.reason }), {
      code: 'ABORT_ERR',
    });
    assert.deepEqual(answerTo(aborted), { status: 400, logged: [] });
  });

  test('hides no other error', () => {
    assert.deepEqual(answerTo(new TypeError('A bug')), { status: 500, logged: ['A request failed'] });
  });
});
