import assert from 'node:assert/strict';
import { Socket } from 'node:net';
import { test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import { uuids } from '../../../adapters/node/ids.ts';
import { newTokenSecret } from '../../../adapters/node/token-secret.ts';
import { bearerToken, gitToken } from '../../../apps/front-door/credentials.ts';
import { sentSecret, type TokenOf } from '../../../apps/front-door/sent-secret.ts';
import { readSecret } from '../../../core/use-cases/callers/authenticate.ts';

/** What requests send on one connection, and how many secrets were hashed for them. */
function connection() {
  const socket = new Socket();
  let hashed = 0;
  const counting = {
    ids: uuids,
    digest: {
      ...digest,
      sha256: (text: string) => {
        hashed += 1;
        return digest.sha256(text);
      },
    },
  };
  return {
    send: (authorization: string | undefined, tokenOf: TokenOf = gitToken) =>
      sentSecret(counting, { headers: authorization === undefined ? {} : { authorization }, socket }, tokenOf),
    hashed: () => hashed,
  };
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

const door = { ids: uuids, digest };
const [FIRST, SECOND] = [newTokenSecret(), newTokenSecret()];

test('The secret of a connection that sends the same header again is hashed once', () => {
  const { send, hashed } = connection();
  const authorization = basic('ada', FIRST);
  for (let request = 0; request < 3; request += 1) assert.deepEqual(send(authorization), readSecret(door, FIRST));
  assert.equal(hashed(), 1);
});

test('A connection that sends another header is known by that one', () => {
  const { send } = connection();
  assert.deepEqual(send(basic('ada', FIRST)), readSecret(door, FIRST));
  assert.deepEqual(send(basic('ada', SECOND)), readSecret(door, SECOND));
  assert.deepEqual(send(`Bearer ${FIRST}`), readSecret(door, FIRST));
  assert.equal(send(undefined), 'missing');
  assert.equal(send(basic('ada', 'a password')), 'malformed');
  assert.deepEqual(send(basic('ada', FIRST)), readSecret(door, FIRST));
});

test('What Git takes of a header, REST does not take of the same one on the same connection', () => {
  const { send } = connection();
  const authorization = basic('ada', FIRST);
  assert.deepEqual(send(authorization), readSecret(door, FIRST));
  assert.equal(send(authorization, bearerToken), 'missing');
});

test('A long header is read each time, and so takes no memory between requests', () => {
  const { send, hashed } = connection();
  const authorization = basic('a'.repeat(10_000), FIRST);
  for (let request = 0; request < 2; request += 1) assert.deepEqual(send(authorization), readSecret(door, FIRST));
  assert.equal(hashed(), 2);
});
