/**
 * Looks which accounts' logs do not continue their last checkpoint, as after a restore: they are not signed until the
 * operator accepts the loss.
 *
 * Invariants: a checkpoint that was continued once is not read again while this process lives, so a look costs little
 * more than the list of checkpoints. One that is contradicted is looked at each time.
 */
import type { AccountId } from '../../kernel/ids.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import { lostCheckpoint } from './accept-tail-loss.ts';
import { type Checkpoints, newestCheckpoints } from './checkpoints.ts';

export interface CheckpointCheckContext {
  readonly events: Pick<EventStore, 'head'>;
  readonly checkpoints: Pick<Checkpoints, 'recordOf'>;
  /** The platform's store. */
  readonly store: Pick<LayerStore, 'list'>;
}

export interface CheckpointCheck {
  /** Rejects if the store or the read models cannot be reached. Ends early when the signal is aborted. */
  look(signal: { readonly aborted: boolean }): Promise<void>;
  /** How many accounts' logs contradicted their last checkpoint at the last look. */
  contradicted(): number;
}

export function createCheckpointCheck({ events, checkpoints, store }: CheckpointCheckContext): CheckpointCheck {
  /** The size of the last checkpoint that each account's log continued. */
  const continued = new Map<AccountId, number>();
  let contradicted = 0;
  return {
    async look(signal) {
      let found = 0;
      for (const [account, { size }] of await newestCheckpoints(store)) {
        if (signal.aborted) return;
        if (continued.get(account) === size) continue;
        if ((await lostCheckpoint(checkpoints, account, await events.head())) === null) continued.set(account, size);
        else found += 1;
      }
      contradicted = found;
    },
    contradicted: () => contradicted,
  };
}
