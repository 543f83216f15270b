/**
 * How many connections a node has: in all, of one network, and of the /48 or /24 around it.
 *
 * Invariants: while the node has many, a network that has its part gets no more of them, so that others find room.
 * Nobody's request is ended to make room: a connection gives way while it is idle, the one that was idle for longest
 * first.
 */
import type { Socket } from 'node:net';
import { networkOf, wideNetworkOf } from '../../core/kernel/network.ts';
import { plainAddress } from './forwarded-hops.ts';

/**
 * Connections of a node, and those of one network that is not the machine's own or a trusted proxy's, and of the /48 or
 * /24 around it (core/kernel/network.ts); and how many these may have while the node has enough that the rest is kept
 * for others. The one that was idle for longest gives way.
 */
export const CONNECTIONS_MAX = 8_192;
export const CONNECTIONS_ROOMY_MAX = 6_144;
export const CONNECTIONS_OF_NETWORK_MAX = 1_024;
export const CONNECTIONS_OF_NETWORK_TIGHT_MAX = 64;
export const CONNECTIONS_OF_WIDE_NETWORK_MAX = 2_048;
export const CONNECTIONS_OF_WIDE_NETWORK_TIGHT_MAX = 256;

export interface RoomBounds {
  readonly connectionsMax: number;
  /** From this many on, networks have their tight part. */
  readonly roomyMax: number;
  readonly network: NetworkBounds;
  readonly wideNetwork: NetworkBounds;
}

export interface NetworkBounds {
  readonly max: number;
  readonly tightMax: number;
}

export interface RoomOptions {
  /** Whether the bounds of networks do not hold for the address: the machine's own, and trusted proxies. */
  readonly isExempt: (address: string) => boolean;
  readonly bounds?: Partial<RoomBounds>;
}

const BOUNDS: RoomBounds = {
  connectionsMax: CONNECTIONS_MAX,
  roomyMax: CONNECTIONS_ROOMY_MAX,
  network: { max: CONNECTIONS_OF_NETWORK_MAX, tightMax: CONNECTIONS_OF_NETWORK_TIGHT_MAX },
  wideNetwork: { max: CONNECTIONS_OF_WIDE_NETWORK_MAX, tightMax: CONNECTIONS_OF_WIDE_NETWORK_TIGHT_MAX },
};

export interface ConnectionRoom {
  /** Counts a new connection, or ends it if there is no room. `handshaking`: it becomes idle later. */
  enter(socket: Socket, handshaking: boolean): void;
  busy(socket: Socket): void;
  idle(socket: Socket): void;
}

/** Connections that are counted together. */
interface Group {
  connections: number;
  /** Those that have been idle for longest are first. */
  readonly idle: Set<Socket>;
}

export function createConnectionRoom({ isExempt, bounds }: RoomOptions): ConnectionRoom {
  const { connectionsMax, roomyMax, network, wideNetwork } = { ...BOUNDS, ...bounds };
  const all = newGroup();
  const networks = createNetworks(network);
  const wideNetworks = createNetworks(wideNetwork);
  const groupsOfSocket = new WeakMap<Socket, readonly Group[]>();

  const forget = (socket: Socket): void => {
    for (const { idle } of groupsOfSocket.get(socket) ?? []) idle.delete(socket);
  };
  const groupsAround = (address: string): readonly Group[] => [
    all,
    networks.at(networkOf(address)),
    wideNetworks.at(wideNetworkOf(address)),
  ];
  /** The socket of TLS is another than the one below it, which is counted. */
  const becomeIdle = (socket: Socket): void => {
    if (socket.destroyed) return;
    const groups = groupsOfSocket.get(socket) ?? groupsAround(plainAddress(socket.remoteAddress ?? ''));
    groupsOfSocket.set(socket, groups);
    for (const { idle } of groups) idle.add(socket);
  };
  /** Ends the connection that was idle for longest. Returns false if none is idle. */
  const giveWay = ({ idle }: Group): boolean => {
    const [oldest] = idle;
    if (oldest === undefined) return false;
    forget(oldest);
    oldest.destroy();
    return true;
  };
  /** Returns the smallest group around the address that can have no more connections; null if all can. */
  const fullGroup = (address: string): Group | null => {
    const isTight = all.connections >= roomyMax;
    const ofNetworks = isExempt(address)
      ? null
      : (networks.full(networkOf(address), isTight) ?? wideNetworks.full(wideNetworkOf(address), isTight));
    return ofNetworks ?? (all.connections >= connectionsMax ? all : null);
  };
  return {
    busy: forget,
    idle: becomeIdle,
    enter(socket, handshaking) {
      const address = plainAddress(socket.remoteAddress ?? '');
      const full = fullGroup(address);
      // Who gives way is of every larger group too.
      if (full !== null && !giveWay(full)) {
        if (handshaking) socket.destroy();
        else refuseConnection(socket);
        return;
      }
      const groups = groupsAround(address);
      for (const group of groups) group.connections += 1;
      groupsOfSocket.set(socket, groups);
      if (!handshaking) becomeIdle(socket);
      socket.once('close', () => {
        forget(socket);
        for (const group of groups) group.connections -= 1;
        networks.clean(networkOf(address));
        wideNetworks.clean(wideNetworkOf(address));
      });
    },
  };
}

function newGroup(): Group {
  return { connections: 0, idle: new Set() };
}

function createNetworks({ max, tightMax }: NetworkBounds) {
  const groups = new Map<string, Group>();
  return {
    at(name: string): Group {
      const group = groups.get(name) ?? newGroup();
      groups.set(name, group);
      return group;
    },
    /** Returns the network if it can have no more connections. */
    full(name: string, isTight: boolean): Group | null {
      const group = groups.get(name);
      return group !== undefined && group.connections >= (isTight ? tightMax : max) ? group : null;
    },
    /** Forgets a network without connections. */
    clean(name: string): void {
      if (groups.get(name)?.connections === 0) groups.delete(name);
    },
  };
}

function refuseConnection(socket: Socket): void {
  const body = JSON.stringify({ detail: 'Too many connections are open: close some, and try again' });
  const head = [
    'HTTP/1.1 503 Service Unavailable',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Retry-After: 5',
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
