/** A node whose process is stopped in the middle of an append: the others continue. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'vitest';
import { cleanUp } from '../../support/cleanup.ts';
import { newEvent, newStream } from '../../support/events.ts';
import { openDatabase, openStore } from './open-store.ts';

const STOPS = 8;

test('a node that is stopped in the middle of an append does not delay others', async (context) => {
  const connectionString = await openDatabase(context);
  const { store } = openStore(context, connectionString, { appendRetrySpanMs: 1 });
  const script = path.join(import.meta.dirname, '../../support/appender.ts');
  const peer = spawn(process.execPath, [script, connectionString], { stdio: ['pipe', 'pipe', 'inherit'] });
  cleanUp(context, async () => {
    peer.kill('SIGKILL');
    if (peer.exitCode === null && peer.signalCode === null) await once(peer, 'exit');
  });
  const lines = createInterface({ input: peer.stdout })[Symbol.asyncIterator]();
  for (let stop = 0; stop < STOPS; stop++) {
    await lines.next();
    peer.kill('SIGSTOP');
    // This store does not retry, so an append that had to wait for the peer's lock to time out would fail.
    for (let n = 0; n < 10; n++) {
      const result = await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
      assert.equal(result.outcome, 'appended');
    }
    peer.kill('SIGCONT');
  }
});
