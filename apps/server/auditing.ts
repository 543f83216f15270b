/** The checkpoints of accounts' logs: their keys, and the store that outlives the log's database. */
import { noteSigning } from '../../adapters/node/note-signing.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import { type Checkpoints, createCheckpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { createLogKeyRing } from '../../core/use-cases/auditing/log-keys.ts';
import { endorsedKey, recordEndorsements } from '../../core/use-cases/auditing/record-endorsements.ts';
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
  const keys = createLogKeyRing({
    logKeys,
    signing: noteSigning,
    clock,
    host: () => new URL(settings.baseUrl).host,
  });
  const acts = { ...context, readModels, keys, signing: noteSigning };
  const recordActs = async (account: AccountId): Promise<LogPosition | null> => {
    const rotated = await recordRotations(acts, account);
    // The later position holds both.
    return (await recordEndorsements(acts, account)) ?? rotated;
  };
  return createCheckpoints({
    readModels,
    digest,
    signing: noteSigning,
    keys,
    store: layers.platform,
    recordActs,
    endorsedKey: (account, size) => endorsedKey(acts, account, size),
  });
}
