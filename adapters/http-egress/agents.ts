/**
 * Agents of Node's http client whose connections go only to checked addresses, for libraries that send requests to
 * addresses which users chose.
 *
 * Invariants: a URL's host is checked again for every connection, by the same rules as any outgoing request; an idle
 * connection is closed after a while. A failure is an error whose `code` is the fault, and which names no address.
 */
import { type ClientRequestArgs, Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { Duplex } from 'node:stream';
import type { OutgoingFailure } from '../../core/kernel/exchange.ts';
import type { TargetFault } from '../../core/kernel/target-fault.ts';
import { dial as dialChecked, openConnection } from './connection.ts';
import type { HttpEgressOptions } from './egress.ts';
import { createTargetCheck, type TargetCheck } from './target-check.ts';

export interface CheckedAgentsOptions extends Omit<HttpEgressOptions, 'httpAllowed'> {
  readonly connectionsMax: number;
  /** For the look-up, the connection and the TLS handshake together. */
  readonly connectMs: number;
  readonly idleMs: number;
}

export interface CheckedAgents {
  /** Null where only https is allowed: unless private targets are. */
  readonly http: HttpAgent | null;
  readonly https: HttpsAgent;
}

type OnCreated = (error: Error | null, stream?: Duplex) => void;

/** Why there is no connection. */
class EgressError extends Error {
  override readonly name = 'EgressError';
  readonly code: TargetFault | OutgoingFailure;
  constructor(code: TargetFault | OutgoingFailure) {
    super(`The connection was not made: ${code}`);
    this.code = code;
  }
}

export function createCheckedAgents(options: CheckedAgentsOptions): CheckedAgents {
  const check = createTargetCheck({ ...options, httpAllowed: options.privateAllowed });
  const kept = { keepAlive: true, maxSockets: options.connectionsMax, maxFreeSockets: options.connectionsMax };
  const createConnection =
    (scheme: 'http' | 'https') =>
    ({ host, port }: ClientRequestArgs, onCreated: OnCreated): undefined => {
      const name = host ?? '';
      const url = `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port ?? ''}/`;
      connect(url, check, options).then(
        (socket) => onCreated(null, socket),
        (error: unknown) => onCreated(error instanceof Error ? error : new Error('The connection was not made')),
      );
    };
  return {
    http: options.privateAllowed
      ? Object.assign(new HttpAgent(kept), { createConnection: createConnection('http') })
      : null,
    https: Object.assign(new HttpsAgent(kept), { createConnection: createConnection('https') }),
  };
}

async function connect(url: string, check: TargetCheck, options: CheckedAgentsOptions): Promise<Duplex> {
  const { authorities, dial = dialChecked, connectMs, idleMs } = options;
  const signal = AbortSignal.timeout(connectMs);
  try {
    const checked = await check(url, signal);
    if ('fault' in checked) throw new EgressError(checked.fault);
    if ('unresolved' in checked) throw new EgressError(checked.unresolved);
    const connection = await openConnection({ ...checked, dial, authorities, signal });
    if (!('outcome' in connection)) {
      const { socket } = connection;
      socket.setTimeout(idleMs, () => socket.destroy());
      return socket;
    }
    if (connection.outcome === 'answered') throw new TypeError('A connection was answered before a request was sent');
    throw new EgressError(connection.outcome === 'refused' ? connection.fault : connection.failure);
  } catch (error) {
    if (signal.aborted) throw new EgressError('timed-out');
    throw error;
  }
}
