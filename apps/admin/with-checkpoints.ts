/** Opens the logs of accounts, their checkpoints and the stores for a command. */
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { Checkpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { composeCheckpoints } from '../server/auditing.ts';
import { catchUpAccountLogs } from './account-logs.ts';
import type { AdminContext, OpenedStorage } from './context.ts';

export interface OpenedCheckpoints extends OpenedStorage {
  readonly checkpoints: Checkpoints;
  /** The platform's store. */
  readonly store: LayerStore;
  readonly readModels: AccountLogReader;
}

export async function withCheckpoints<Result>(
  context: AdminContext,
  work: (opened: OpenedCheckpoints) => Promise<Result>,
): Promise<Result> {
  return context.withProjections(async ({ runner, readModels }) => {
    await catchUpAccountLogs(runner, context.events);
    return context.onStorage((storage) => {
      const checkpoints = composeCheckpoints(context.settings, { context }, storage.layers, readModels);
      return work({ ...storage, checkpoints, store: storage.layers.platform, readModels });
    });
  });
}
