import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { test } from 'vitest';
import { isOfLeaving } from '../../../apps/front-door/closed-signal.ts';

test('An answer whose stream closed with its connection did not fail; one that closed before did', () => {
  const socket = new Socket();
  const cut = Object.assign(new Error('Premature close'), { code: 'ERR_STREAM_PREMATURE_CLOSE' });
  assert.equal(isOfLeaving(cut, { errored: null, socket }), false);
  socket.destroy();
  assert.equal(isOfLeaving(cut, { errored: null, socket }), true);
  assert.equal(isOfLeaving(new Error('A mistake'), { errored: null, socket }), false);
});
