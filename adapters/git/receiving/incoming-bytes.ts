/**
 * Bounds the bytes of packs that are arriving at a node, or wait there to be checked: they lie on its disk, whatever
 * becomes of them.
 *
 * Invariants: neither one account nor a few accounts take the whole bound: its last part is kept for accounts that have
 * few bytes arriving. What a push took is given back once, when its pack is refused, or checked, which is when quotas
 * count it.
 */
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';

export interface IncomingBytes {
  open(account: string): IncomingPush;
}

/** What one push brings. */
export interface IncomingPush {
  /** Counts these bytes. Throws IncomingFullError when they do not fit. */
  add(bytes: number): void;
  /** Counts them no more. */
  release(): void;
}

/** More bytes of a push do not fit now. */
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
            throw new IncomingFullError(
              'other pushes of this account are larger together than may arrive at the same time',
            );
          }
          const allowedBytes = bytesMax - (ofAccount > kept.accountBytesMax ? kept.bytes : 0);
          if (all + bytes > allowedBytes) {
            throw new IncomingFullError('more is being pushed to this server than it has room for');
          }
          count(bytes);
        },
        release: () => count(-own),
      };
    },
  };
}
