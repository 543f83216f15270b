/**
 * Failures that nobody caught, with the process replaced by an emitter: the real one is tested in
 * test/security/attacks/stray-failures.long.test.ts.
 */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'vitest';
import { takeStrayFailures, withinRequest } from '../../../apps/server/stray-failures.ts';

function taken() {
  const emitter = new EventEmitter();
  const seen: string[] = [];
  const note = (level: string) => () => void seen.push(level);
  const log = {
    debug: note('debug'),
    info: note('info'),
    warn: note('warn'),
    error: note('error'),
    fatal: note('fatal'),
  };
  const count = (kind: string): void => void seen.push(kind);
  takeStrayFailures({ log, count, end: (reason) => void seen.push(`ends: ${reason}`) }, emitter);
  return { emitter, seen };
}

function newResponse(): ServerResponse {
  return new ServerResponse(new IncomingMessage(new Socket()));
}

test('A rejection in the work for a request ends that request only', async () => {
  const { emitter, seen } = taken();
  const response = newResponse();
  await new Promise<void>((resolve) => {
    withinRequest(response, () => {
      setTimeout(() => {
        emitter.emit('unhandledRejection', new TypeError('of the work'));
        resolve();
      }, 1);
    });
  });
  assert.deepEqual(seen, ['rejection', 'error']);
  assert.ok(response.destroyed);
});

test('A rejection of a request that is over ends nothing', async () => {
  const { emitter, seen } = taken();
  const response = newResponse();
  withinRequest(response, () => {
    response.emit('close');
    emitter.emit('unhandledRejection', new TypeError('afterwards'));
  });
  assert.deepEqual(seen, ['rejection', 'error']);
  assert.ok(!response.destroyed, 'nobody holds the response');
});

test('A rejection without a request ends the process, unless work was called off', () => {
  const { emitter, seen } = taken();
  for (const cause of [
    new DOMException('The work was aborted', 'AbortError'),
    Object.assign(new Error('The connection was reset'), { code: 'ECONNRESET' }),
    Object.assign(new Error('The stream ended too soon'), { code: 'ERR_STREAM_PREMATURE_CLOSE' }),
  ]) {
    emitter.emit('unhandledRejection', cause);
  }
  assert.deepEqual(seen.splice(0), ['rejection', 'error', 'rejection', 'error', 'rejection', 'error']);
  for (const cause of [new TypeError('of a loop'), undefined, 'ECONNRESET']) {
    emitter.emit('unhandledRejection', cause);
    assert.deepEqual(seen.splice(0), ['rejection', 'fatal', 'ends: unhandled-rejection']);
  }
});

test('An exception that nobody caught ends the process, in a request too', () => {
  const { emitter, seen } = taken();
  withinRequest(newResponse(), () => emitter.emit('uncaughtException', new Error('thrown')));
  assert.deepEqual(seen, ['exception', 'fatal', 'ends: uncaught-exception']);
});
