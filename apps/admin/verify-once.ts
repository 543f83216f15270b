/** `strata-admin log verify --background-once`: a whole round of what workers verify, without their bounds. */
import { pause } from '../../adapters/node/pause.ts';
import { type Told, verifyOnce } from '../../core/use-cases/verifying/verify-in-background.ts';
import type { Answer } from './answer.ts';
import type { AdminContext } from './context.ts';
import { withCheckpoints } from './with-checkpoints.ts';

const NEVER = new AbortController().signal;

export async function verifyLikeWorkers(context: AdminContext): Promise<Answer> {
  const told = await withCheckpoints(context, (opened) =>
    verifyOnce({ ...context, ...opened, pause, onFault: () => undefined }, NEVER),
  );
  const none = 'No fault in the log, the vault and the layers';
  return {
    value: { faults: told },
    text: told.length === 0 ? none : told.map(lineOf).join('\n'),
    status: told.length === 0 ? 0 : 1,
  };
}

function lineOf({ account, fault }: Told): string {
  return `${account === null ? 'no account' : `account ${account}`}: ${fault}`;
}
