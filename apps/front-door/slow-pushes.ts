/**
 * The pushes of this node, by git and over the API, whose clients send slowly: how many an account and a network may
 * have.
 *
 * Invariants: of too many the slowest gives way, whoever came last, so a client that sends faster is never cut for one
 * that sends less. A push is counted while it is slow and under way, and no longer.
 */
import { isIpv6, networkOf, wideNetworkOf } from '../../core/kernel/network.ts';

/** Slow pushes of an account, of one network, and of the /48 around one of IPv6 (core/kernel/network.ts). */
export const SLOW_PUSHES_OF_ACCOUNT_MAX = 16;
export const SLOW_PUSHES_OF_NETWORK_MAX = 32;
export const SLOW_PUSHES_OF_WIDE_NETWORK_MAX = 64;

/** Which slow pushes were too many. */
export interface Crowd {
  readonly of: 'account' | 'network';
  readonly pushesMax: number;
}

/** One push. */
export interface SlowPush {
  /** Counts the push as a slow one of this rate from now on. */
  slow(bytesPerSecond: number): void;
  /** Counts it no longer. Later calls do nothing. */
  leave(): void;
  /** Returns of which slow pushes it was the slowest when they were too many; null if it may go on. */
  cutFor(): Crowd | null;
}

export interface SlowPushes {
  open(of: { readonly account: string; readonly address: string }): SlowPush;
}

interface Counted {
  readonly groups: readonly Group[];
  bytesPerSecond: number;
  cutFor: Crowd | null;
}

interface Group {
  readonly name: string;
  readonly crowd: Crowd;
}

export function createSlowPushes(): SlowPushes {
  const members = new Map<string, Set<Counted>>();
  const leave = (push: Counted): void => {
    for (const { name } of push.groups) {
      const group = members.get(name);
      group?.delete(push);
      if (group?.size === 0) members.delete(name);
    }
  };
  const join = (push: Counted): void => {
    for (const { name } of push.groups) {
      const group = members.get(name) ?? new Set();
      members.set(name, group.add(push));
    }
  };
  return {
    open(of) {
      const push: Counted = { groups: groupsOf(of), bytesPerSecond: 0, cutFor: null };
      return {
        slow(bytesPerSecond) {
          if (push.cutFor !== null) return;
          push.bytesPerSecond = bytesPerSecond;
          join(push);
          for (const { name, crowd } of push.groups) {
            const group = members.get(name);
            if (group === undefined || group.size <= crowd.pushesMax) continue;
            const slowest = slowestOf(group);
            slowest.cutFor = crowd;
            leave(slowest);
          }
        },
        leave: () => leave(push),
        cutFor: () => push.cutFor,
      };
    },
  };
}

function groupsOf({ account, address }: { readonly account: string; readonly address: string }): readonly Group[] {
  const ofNetwork = (name: string, pushesMax: number): Group => ({ name, crowd: { of: 'network', pushesMax } });
  return [
    { name: `account ${account}`, crowd: { of: 'account', pushesMax: SLOW_PUSHES_OF_ACCOUNT_MAX } },
    ofNetwork(networkOf(address), SLOW_PUSHES_OF_NETWORK_MAX),
    ...(isIpv6(address) ? [ofNetwork(wideNetworkOf(address), SLOW_PUSHES_OF_WIDE_NETWORK_MAX)] : []),
  ];
}

/** Returns the slowest push; among equals the one that became slow last, since the others have sent for longer. */
function slowestOf(group: ReadonlySet<Counted>): Counted {
  return [...group].reduce((slowest, push) => (push.bytesPerSecond <= slowest.bytesPerSecond ? push : slowest));
}
