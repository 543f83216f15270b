/** Reads the model of accounts' logs as it is now, beside the server that keeps it. */
import { LOG_START } from '../../core/kernel/envelope.ts';
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import { createAccountLogProjection } from '../../projections/account-log/apply.ts';
import { readAccountLogs, readEntryPlaces, readTreeHashes } from '../../projections/account-log/queries.ts';
import { createLiveReader } from '../../projections/live-reader.ts';
import type { Foundation } from '../server/foundation.ts';

export type AccountLogs = Pick<AccountLogReader, 'treeHashes' | 'entryPlaces' | 'accountLogs'>;

/** Returns null if no server has made the model yet. */
export async function openAccountLogs({ pool, context }: Foundation): Promise<AccountLogs | null> {
  const { digest } = context;
  const progress = { knownPosition: () => LOG_START, positionWentBack: () => undefined };
  const reader = createLiveReader(pool, createAccountLogProjection(digest), progress);
  try {
    await readAccountLogs(reader, null, 1);
  } catch (error) {
    if (error instanceof ReadModelError) return null;
    throw error;
  }
  return {
    treeHashes: (account, subtrees) => readTreeHashes(reader, digest, account, subtrees),
    entryPlaces: (account, filter, range) => readEntryPlaces(reader, account, filter, range),
    accountLogs: (after, limit) => readAccountLogs(reader, after, limit),
  };
}
