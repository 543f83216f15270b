/** The checkpoints of accounts' logs: their keys, and the store that outlives the log's database. */
import { noteSigning } from '../../adapters/node/note-signing.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import { type Checkpoints, createCheckpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { createLogKeyRing } from '../../core/use-cases/auditing/log-keys.ts';
import { recordRotations } from '../../core/use-cases/auditing/record-rotations.ts';
import type { Foundation } from './foundation.ts';
import type { Settings } from './settings.ts';

export function composeCheckpoints(
  settings: Settings,
  { context }: Pick<Foundation, 'context'>,
  layers: LayerStores,
  readModels: AccountLogReader,
): Checkpoints {
  const { clock, digest, logKeys } = context;
  const recordActs = (account: AccountId) => recordRotations({ ...context, readModels }, account);
  const keys = createLogKeyRing({
    logKeys,
    signing: noteSigning,
    clock,
    host: () => new URL(settings.baseUrl).host,
  });
  return createCheckpoints({ readModels, digest, signing: noteSigning, keys, store: layers.platform, recordActs });
}
