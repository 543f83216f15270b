/**
 * Bounds the bytes of packs that are arriving at a node, or wait there to be checked: they lie on its disk, whatever
 * becomes of them.
 *
 * Invariants: no account takes the room of all, and no few accounts do: the last of it is kept for those that have
 * few. What a push took is given back once, when its pack is refused, or checked, which is when quotas count it.
 */
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';

export interface IncomingBytes {
  open(account: string): IncomingPush;
}

/** What one push brings. */
export interface IncomingPush {
  /** Counts these bytes. Throws IncomingFullError when there is no room for them. */
  add(bytes: number): void;
  /** Counts them no more. */
  release(): void;
}

/** There is no room for more bytes of a push now. */
export class IncomingFullError extends Error {
  override readonly name = 'IncomingFullError';
  readonly refusal: PackRefusal;
  constructor(detail: string) {
    super(detail);
    this.refusal = { refused: 'too-much-at-once', detail };
  }
}

export interface IncomingBounds {
  readonly bytesMax: number;
  readonly accountBytesMax: number;
  /** The last `bytes` of all, which only an account takes that then has at most `accountBytesMax`. */
  readonly kept: { readonly bytes: number; readonly accountBytesMax: number };
}

export function createIncomingBytes({ bytesMax, accountBytesMax, kept }: IncomingBounds): IncomingBytes {
  const ofAccounts = new Map<string, number>();
  let all = 0;
  return {
    open: (account) => {
      let own = 0;
      const count = (bytes: number) => {
        own += bytes;
        all += bytes;
        const left = (ofAccounts.get(account) ?? 0) + bytes;
        if (left === 0) ofAccounts.delete(account);
        else ofAccounts.set(account, left);
      };
      return {
        add: (bytes) => {
          const ofAccount = (ofAccounts.get(account) ?? 0) + bytes;
          if (ofAccount > accountBytesMax) {
            throw new IncomingFullError('other pushes of this account are larger together than may arrive at once');
          }
          const room = bytesMax - (ofAccount > kept.accountBytesMax ? kept.bytes : 0);
          if (all + bytes > room) {
            throw new IncomingFullError('more is being pushed to this server than it has room for at once');
          }
          count(bytes);
        },
        release: () => count(-own),
      };
    },
  };
}
