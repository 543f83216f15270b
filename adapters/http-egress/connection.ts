/**
 * Opens connections to addresses that were checked, and to no others.
 *
 * Invariants: a socket gets addresses, never a name; before the first byte is sent, the peer address that the
 * socket reports is compared with them; over https the certificate must be for the URL's host, and signed by one of the
 * authorities, which by default are Node's and those of NODE_EXTRA_CA_CERTS.
 */
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { connect as startTls, type TLSSocket } from 'node:tls';
import type { Exchange } from '../../core/kernel/exchange.ts';
import { canonicalAddress } from './addresses.ts';
import { codeOf, failed } from './failures.ts';
import type { Target } from './target.ts';

/** Starts to connect to one of the addresses. */
export type Dial = (addresses: readonly string[], port: number) => Socket;

/** How long an attempt at one address may delay the attempt at the next. */
const ADDRESS_ATTEMPT_MS = 1_000;

export const dial: Dial = (addresses, port) => {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return connect({
    // A placeholder that no name server sees: `lookup` returns the addresses. With an address here, Node would skip it.
    host: 'checked.invalid',
    port,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
    lookup: (_host, _options, callback) => callback(null, found),
  });
};

export interface Connection {
  readonly socket: Socket;
  /** Bytes received over the wire so far, handshake and framing included. */
  receivedBytes(): number;
}

export interface ConnectionOptions {
  readonly target: Target;
  readonly addresses: readonly string[];
  readonly dial: Dial;
  /** PEM; when absent, Node's own and those of NODE_EXTRA_CA_CERTS. */
  readonly authorities: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/**
 * Resolves with a connection, over https after its TLS handshake, or why there is none. Rejects only with the signal's
 * reason.
 */
export async function openConnection(options: ConnectionOptions): Promise<Connection | Exchange> {
  const { target, addresses, signal } = options;
  const raw = options.dial(addresses, target.port);
  destroyOnError(raw);
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
  if (!target.isSecure) return { socket: raw, receivedBytes: () => raw.bytesRead };
  const socket = startTls({
    socket: raw,
    // For an address there is no server name to send (RFC 6066, section 3): Node checks the certificate against `host`.
    host: target.host,
    servername: target.isAddress ? '' : target.host.replace(/\.$/, ''),
    ALPNProtocols: ['http/1.1'],
    // Overrides NODE_TLS_REJECT_UNAUTHORIZED, because the request carries a secret.
    rejectUnauthorized: true,
    ...(options.authorities === undefined ? {} : { ca: [...options.authorities] }),
  });
  destroyOnError(socket);
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

/** Handles errors that arrive when nothing else listens: the user of the socket sees its end. */
function destroyOnError(socket: Socket): void {
  socket.on('error', () => socket.destroy());
}

function isPeerChecked({ remoteAddress }: Socket, addresses: readonly string[]): boolean {
  const peer = canonicalAddress(remoteAddress ?? '');
  return peer !== null && addresses.some((address) => canonicalAddress(address) === peer);
}

/** Node sets `authorizationError` when it rejects the certificate; other faults happen before. */
function isCertificateFault(socket: TLSSocket): boolean {
  return socket.authorizationError != null;
}
