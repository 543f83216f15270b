/**
 * Connections to addresses that were checked, and to no others.
 *
 * Must stay true: a socket is given addresses, never a name; before the first byte goes out the socket's own word of
 * its peer is compared with them; the certificate is that of the URL's host, judged by Node's authorities and those
 * of NODE_EXTRA_CA_CERTS.
 */
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as startTls, type TLSSocket } from 'node:tls';
import type { Exchange } from '../../core/ports/outgoing-requests.ts';
import { canonicalAddress } from './addresses.ts';
import { codeOf, failed } from './failures.ts';
import type { Target } from './target.ts';

/** Starts to connect to one of the addresses. */
export type Dial = (addresses: readonly string[], port: number) => Socket;

/** How long one address may hold up the next. */
const ADDRESS_SPAN_MS = 1_000;

export const dial: Dial = (addresses, port) => {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return connect({
    // Nothing looks it up: `lookup` answers for it. An address here would go past `lookup`.
    host: 'checked.invalid',
    port,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_SPAN_MS,
    lookup: (_host, _options, callback) => callback(null, found),
  });
};

export interface Connection {
  readonly socket: TLSSocket;
  /** What came over the wire so far, handshake and framing included. */
  receivedBytes(): number;
}

export interface ConnectionOptions {
  readonly target: Target;
  readonly addresses: readonly string[];
  readonly dial: Dial;
  /** PEM; absent: Node's own, with those of NODE_EXTRA_CA_CERTS. */
  readonly authorities: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/** A connection after its handshake, or why there is none. Rejects only with the signal's reason. */
export async function openConnection(options: ConnectionOptions): Promise<Connection | Exchange> {
  const { target, addresses, signal } = options;
  const raw = options.dial(addresses, target.port);
  hearErrors(raw);
  try {
    await once(raw, 'connect', { signal });
  } catch (error) {
    raw.destroy();
    signal.throwIfAborted();
    return failed('connection-failed', codeOf(error));
  }
  if (!isPeerChecked(raw, addresses)) {
    raw.destroy();
    return { outcome: 'refused', fault: 'peer-not-checked' };
  }
  const socket = startTls({
    socket: raw,
    // With an address there is no server name to send (RFC 6066, section 3), and `host` is what the certificate is for.
    host: target.host,
    servername: target.isAddress ? '' : target.host.replace(/\.$/, ''),
    ALPNProtocols: ['http/1.1'],
    // Whatever NODE_TLS_REJECT_UNAUTHORIZED says: a secret goes out.
    rejectUnauthorized: true,
    ...(options.authorities === undefined ? {} : { ca: [...options.authorities] }),
  });
  hearErrors(socket);
  try {
    await once(socket, 'secureConnect', { signal });
  } catch (error) {
    socket.destroy();
    raw.destroy();
    signal.throwIfAborted();
    const code = codeOf(error);
    return failed(isCertificateFault(socket) ? 'certificate-invalid' : 'tls-failed', code);
  }
  return { socket, receivedBytes: () => raw.bytesRead };
}

/** An error that comes after its waiter left ends the socket; whoever uses that is told by its end. */
function hearErrors(socket: Socket): void {
  socket.on('error', () => socket.destroy());
}

function isPeerChecked({ remoteAddress }: Socket, addresses: readonly string[]): boolean {
  const peer = canonicalAddress(remoteAddress ?? '');
  return peer !== null && addresses.some((address) => canonicalAddress(address) === peer);
}

/** Node says `authorizationError` once it has judged the certificate; other faults come before. */
function isCertificateFault(socket: TLSSocket): boolean {
  return socket.authorizationError != null;
}
