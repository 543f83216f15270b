/**
 * Finds the checkpoints that accounts' logs do not continue, and gives them up when the operator accepts the loss.
 *
 * Invariants: `LogTailLost` is in the log before the checkpoint leaves its place, so no log is signed again that does
 * not say what it lost. Each lost checkpoint has one such event, also when the work is repeated after a crash, and
 * stays in the store. Two operators at the same moment may leave two events of one checkpoint.
 */

import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { base64OfHex } from '../../audit/base64.ts';
import type { TreeHead } from '../../audit/checkpoint.ts';
import type { Cause, LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { LayerStore } from '../../ports/layer-store.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { isInAccountLog } from '../accounts/is-in-account-log.ts';
import { type Checkpoints, giveUpCheckpoint, type KeptCheckpoint } from './checkpoints.ts';

export interface TailLossContext extends Context {
  readonly checkpoints: Pick<Checkpoints, 'recordOf'>;
  /** The platform's store. */
  readonly store: LayerStore;
}

/**
 * Returns the last checkpoint of the account if its log does not continue it, else null. Nobody signs the log of an
 * account that this log does not have, so its checkpoint contradicts nothing.
 */
export async function lostCheckpoint(
  checkpoints: Pick<Checkpoints, 'recordOf'>,
  account: AccountId,
  position: LogPosition,
): Promise<KeptCheckpoint | null> {
  const { head, last } = await checkpoints.recordOf(account, position);
  return head.size === 0 || last === null || last.continued ? null : last;
}

/** Gives up every checkpoint that the log does not continue, and returns them: none if it continues the last one. */
export async function acceptTailLoss(
  context: TailLossContext,
  cause: Cause,
  { account, reason }: { readonly account: AccountId; readonly reason: string },
): Promise<readonly TreeHead[] | { readonly refused: Refusal }> {
  const accepted: TreeHead[] = [];
  for (;;) {
    const lost = await lostCheckpoint(context.checkpoints, account, await context.events.head());
    if (lost === null) return accepted;
    const { size, root } = lost;
    const refusals: Refusal[] = [];
    await giveUpCheckpoint(context.store, { ...lost, account }, async () => {
      const refused = await record(context, cause, account, { size, root: base64OfHex(root), reason });
      if (refused !== null) refusals.push(refused);
      return refused === null;
    });
    const [refused] = refusals;
    if (refused !== undefined) return { refused };
    accepted.push({ size, root });
  }
}

interface Loss {
  readonly size: number;
  /** In base64. */
  readonly root: string;
  readonly reason: string;
}

/** Returns the refusal; null if the loss is in the log. */
async function record(context: TailLossContext, cause: Cause, account: AccountId, loss: Loss): Promise<Refusal | null> {
  const { size, root } = loss;
  if (await isInAccountLog(context, account, { type: 'LogTailLost', members: { size, root } })) return null;
  const executed = await execute(context, accounts, account, { account, cause }, (state) =>
    decideAccount(state, { type: 'AcceptTailLoss', ...loss }),
  );
  return 'refused' in executed ? executed.refused : null;
}
