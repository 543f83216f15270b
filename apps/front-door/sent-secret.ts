/**
 * The secret of an access token that a request sends, read once for each connection: clients send the same header with
 * every request, and decoding, checking and hashing it takes a fifth of the time of answering a poll of refs.
 *
 * Invariants: what is returned is what reading the header gives. Whether the token is valid is asked at each request
 * (apps/front-door/admission.ts). What is kept is bounded, and goes with the connection.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type ReadSecret, readSecret } from '../../core/use-cases/callers/authenticate.ts';
import type { FrontDoor } from './front-door.ts';

/** Returns the token in the value of an Authorization header, or null: apps/front-door/credentials.ts. */
export type TokenOf = (authorization: string | undefined) => string | null;

/** `malformed`: no token has this form. */
export type SentSecret = ReadSecret | 'missing' | 'malformed';

interface Known {
  readonly authorization: string;
  readonly tokenOf: TokenOf;
  readonly read: ReadSecret;
}

const known = new WeakMap<Socket, Known>();
/**
 * Longer headers are read each time. That of git with a username of 39 letters has 135 characters. Internal: both ways
 * give the same secret.
 */
const KNOWN_LENGTH_MAX = 512;

export function sentSecret(
  door: Pick<FrontDoor, 'ids' | 'digest'>,
  { headers: { authorization }, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  tokenOf: TokenOf,
): SentSecret {
  const before = known.get(socket);
  if (before !== undefined && before.authorization === authorization && before.tokenOf === tokenOf) return before.read;
  const token = tokenOf(authorization);
  if (token === null || authorization === undefined) return 'missing';
  const read = readSecret(door, token);
  if (read === null) return 'malformed';
  if (authorization.length <= KNOWN_LENGTH_MAX) known.set(socket, { authorization, tokenOf, read });
  return read;
}
