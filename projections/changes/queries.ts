/** The query of an account's changes, which every change of an account with a quota of them reads. */
import type { AccountId, Timestamp } from '../../core/kernel/ids.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import { MONTHS } from './table.ts';

const changesQuery: ReadQuery = {
  answer: (table) => `SELECT to_json(changes) FROM ${table(MONTHS.name)} WHERE account_id = $1 AND month = $2`,
};

/** The model parks no stream. */
const NOTHING_PARKED = { streams: [] };

export async function readChanges(reader: LiveReader, account: AccountId, now: Timestamp): Promise<number> {
  const { value } = await reader.read(changesQuery, [account, now.slice(0, 7)], () => NOTHING_PARKED);
  return value === null ? 0 : (value as number);
}
