/** Reads the model of accounts' logs: as it is now, beside the server that keeps it, or brought up to date first. */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountLogReader } from '../../core/ports/account-log.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import { createAccountLogProjection } from '../../projections/account-log/apply.ts';
import { readAccountLogs, readEntryPlaces, readTreeHashes } from '../../projections/account-log/queries.ts';
import { createLiveReader } from '../../projections/live-reader.ts';
import type { Foundation } from '../server/foundation.ts';
import type { ComposedProjections } from '../server/projections.ts';

export type AccountLogs = Pick<AccountLogReader, 'treeHashes' | 'entryPlaces' | 'accountLogs'>;

const ACCOUNT_LOG_MODEL = 'account_log';
/** It takes as long as a rebuild if the model is missing. */
const CATCHING_UP_MS = 60 * 60_000;

/** Starts the runner for this model alone. Returns the head of the log, up to which the model is then. */
export async function catchUpAccountLogs(
  runner: Pick<ComposedProjections['runner'], 'start' | 'waitFor'>,
  events: Pick<EventStore, 'head'>,
): Promise<LogPosition> {
  await runner.start({ lead: true, models: [ACCOUNT_LOG_MODEL] });
  const head = await events.head();
  await runner.waitFor(head, CATCHING_UP_MS, [ACCOUNT_LOG_MODEL]);
  return head;
}

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
