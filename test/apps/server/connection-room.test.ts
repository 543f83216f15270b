/** How many connections a node, a network and the networks around it have, at each limit and one past it. */
import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { describe, test } from 'vitest';
import {
  CONNECTIONS_MAX,
  CONNECTIONS_OF_NETWORK_MAX,
  CONNECTIONS_OF_NETWORK_TIGHT_MAX,
  CONNECTIONS_OF_WIDE_NETWORK_MAX,
  CONNECTIONS_OF_WIDE_NETWORK_TIGHT_MAX,
  CONNECTIONS_ROOMY_MAX,
  createConnectionRoom,
} from '../../../apps/server/connection-room.ts';

const MACHINE = '127.0.0.1';

/** A connection that nothing carries; it keeps what it is sent. */
class TestConnection extends Socket {
  override readonly remoteAddress: string;
  sent = '';

  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }

  override end(text?: unknown): this {
    this.sent += String(text);
    return this;
  }
}

function newRoom() {
  const room = createConnectionRoom({ isExempt: (address) => address === MACHINE });
  const enter = (address: string): TestConnection => {
    const connection = new TestConnection(address);
    room.enter(connection, false);
    return connection;
  };
  /** Opens a connection that is busy from then on. Returns whether there was room for it. */
  const has = (address: string): boolean => {
    const connection = enter(address);
    room.busy(connection);
    if (connection.sent !== '') assert.match(connection.sent, /^HTTP\/1\.1 503 [^]*Too many connections are open/);
    return connection.sent === '';
  };
  const fill = (count: number, addressOf: (index: number) => string): void => {
    for (let index = 0; index < count; index += 1) assert.ok(has(addressOf(index)), `connection ${index + 1}`);
  };
  return { enter, has, fill };
}

describe('Connections', () => {
  test('of one network are as many as its limit, and one more is refused', () => {
    const { has, fill } = newRoom();
    fill(CONNECTIONS_OF_NETWORK_MAX, () => '203.0.113.1');
    assert.ok(!has('203.0.113.1'));
    assert.ok(has('203.0.113.2'));
  });

  test('of the networks of a /24 are as many as its limit, and one more is refused', () => {
    const { has, fill } = newRoom();
    fill(CONNECTIONS_OF_WIDE_NETWORK_MAX, (index) => `203.0.113.${index % 250}`);
    assert.ok(!has('203.0.113.251'));
    assert.ok(has('198.51.100.1'));
  });

  test('are few for each network from the limit of a roomy node on, and not one earlier', () => {
    const { has, fill } = newRoom();
    fill(CONNECTIONS_ROOMY_MAX - CONNECTIONS_OF_NETWORK_TIGHT_MAX - 1, () => MACHINE);
    fill(CONNECTIONS_OF_NETWORK_TIGHT_MAX + 1, () => '203.0.113.1');
    assert.ok(!has('203.0.113.1'), 'the node has as many as the limit');
    fill(CONNECTIONS_OF_NETWORK_TIGHT_MAX, () => '198.51.100.1');
    assert.ok(!has('198.51.100.1'));
  });

  test('are few for the networks of a /24 on a node that is not roomy', () => {
    const { has, fill } = newRoom();
    fill(CONNECTIONS_ROOMY_MAX, () => MACHINE);
    fill(CONNECTIONS_OF_WIDE_NETWORK_TIGHT_MAX, (index) => `203.0.113.${index % 250}`);
    assert.ok(!has('203.0.113.251'));
    assert.ok(has('198.51.100.1'));
  });

  test('of a node are as many as its limit; one more is refused, or takes the place of an idle one', () => {
    const { enter, has, fill } = newRoom();
    fill(CONNECTIONS_MAX - 1, () => MACHINE);
    const idle = enter(MACHINE);
    assert.ok(has('203.0.113.1'));
    assert.ok(idle.destroyed);
    const full = newRoom();
    full.fill(CONNECTIONS_MAX, () => MACHINE);
    assert.ok(!full.has('203.0.113.1'));
  });
});
