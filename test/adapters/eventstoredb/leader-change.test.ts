/** A leader that stops leading, or freezes, while the adapter waits for its answers. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { newEvent, newStream } from '../../support/events.ts';
import { openServer, openStore } from '../../support/eventstoredb/open-log.ts';
import type { ProtocolServer } from '../../support/eventstoredb/protocol-server.ts';
import { eventually } from '../../support/processes.ts';

const newAppend = () => ({ stream: newStream(), expected: 'none', events: [newEvent()] }) as const;
const received = (server: ProtocolServer, appends: number) =>
  eventually('the append arrives', async () => server.counts.appends >= appends);

describe('a leader of EventStoreDB that another node replaces', () => {
  test('does not end the process when it ends its stream of appends late', { timeout: 20_000 }, async (context) => {
    const [first, second] = [await openServer(context), await openServer(context)];
    const { store } = openStore(context, first.url);
    await store.append(newAppend());
    first.faults.append = () => 'stall';
    const unanswered = newAppend();
    const old = store.append(unanswered);
    await received(first, 2);
    first.faults.leaderPort = second.port;
    await store.head();
    let faults = 0;
    second.faults.append = () => (faults++ === 0 ? 'answer-late' : null);
    const answeredLate = newAppend();
    const late = store.append(answeredLate);
    await received(second, 1);
    await first.stop();
    assert.deepEqual([(await old).outcome, (await late).outcome], ['appended', 'appended']);
    // EventStoreDB's client throws here what nobody can catch, if the late answer finds its append removed.
    await sleep(1_200);
    for (const { stream } of [unanswered, answeredLate]) assert.equal(second.log.stream(stream)?.length, 1);
  });
});
