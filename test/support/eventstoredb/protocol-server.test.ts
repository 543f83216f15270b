/** The protocol server, driven by EventStoreDB's own client, including the calls that the adapter does not use. */
import assert from 'node:assert/strict';
import {
  EventStoreDBClient,
  jsonEvent,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
} from '@eventstore/db-client';
import { describe, test } from 'vitest';
import { cleanUp, type Ending } from '../cleanup.ts';
import { openServer } from './open-log.ts';
import type { ProtocolServerOptions } from './protocol-server.ts';

async function openClient(context: Ending, options: ProtocolServerOptions = {}): Promise<EventStoreDBClient> {
  const server = await openServer(context, options);
  const client = EventStoreDBClient.connectionString(server.url);
  cleanUp(context, () => client.dispose());
  return client;
}

const happened = () => jsonEvent({ type: 'Happened', data: { n: 1 } });

async function read(client: EventStoreDBClient, stream: string): Promise<(bigint | undefined)[]> {
  const revisions: (bigint | undefined)[] = [];
  for await (const { event } of client.readStream(stream)) revisions.push(event?.revision);
  return revisions;
}

describe('the protocol server', () => {
  for (const batches of [true, false]) {
    test(`accepts and refuses appends ${batches ? 'in batches' : 'one by one'}`, async (context) => {
      const client = await openClient(context, { batches });
      const first = await client.appendToStream('a-1', [happened(), happened()], { expectedRevision: 'no_stream' });
      assert.deepEqual([first.success, first.nextExpectedRevision], [true, 1n]);
      const late = client.appendToStream('a-1', happened(), { expectedRevision: 'no_stream' });
      await assert.rejects(late, (error) => error instanceof WrongExpectedVersionError && error.actualVersion === 1n);
      const again = [happened()];
      const second = await client.appendToStream('a-1', again, { expectedRevision: 1n });
      assert.deepEqual(await client.appendToStream('a-1', again, { expectedRevision: 1n }), second);
      assert.deepEqual(await read(client, 'a-1'), [0n, 1n, 2n]);
    });
  }

  test('deletes streams, whose revisions then go on, and tombstones them permanently', async (context) => {
    const client = await openClient(context);
    await client.appendToStream('a-1', [happened(), happened()]);
    await client.deleteStream('a-1');
    await assert.rejects(read(client, 'a-1'), StreamNotFoundError);
    const result = await client.appendToStream('a-1', happened(), { expectedRevision: 'no_stream' });
    assert.equal(result.nextExpectedRevision, 2n);
    assert.deepEqual(await read(client, 'a-1'), [2n]);
    await client.tombstoneStream('a-1');
    await assert.rejects(client.appendToStream('a-1', happened()), StreamDeletedError);
    await assert.rejects(read(client, 'a-1'), StreamDeletedError);
    await client.appendToStream('a-2', [happened(), happened()]);
    const late = client.tombstoneStream('a-2', { expectedRevision: 0n });
    await assert.rejects(late, (error) => error instanceof WrongExpectedVersionError && error.actualVersion === 1n);
    await client.tombstoneStream('a-2', { expectedRevision: 1n });
    await assert.rejects(client.tombstoneStream('a-2'), StreamDeletedError);
  });

  test('reads the whole log in both directions, its own events included', async (context) => {
    const client = await openClient(context);
    await client.appendToStream('a-1', happened());
    const orders: (string | undefined)[][] = [];
    for (const direction of ['forwards', 'backwards'] as const) {
      const streams: (string | undefined)[] = [];
      const fromPosition = direction === 'forwards' ? 'start' : 'end';
      for await (const { event } of client.readAll({ direction, fromPosition })) streams.push(event?.streamId);
      orders.push(streams);
    }
    assert.deepEqual(orders[0], ['$stats-127.0.0.1', '$stats-127.0.0.1', 'a-1']);
    assert.deepEqual(orders[1], orders[0]?.toReversed());
  });
});
