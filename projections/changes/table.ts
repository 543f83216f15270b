/**
 * The tables of accounts' changes: their number in each month, and which requests were counted lately.
 *
 * Invariants: a number is a sum that only the checkpoint's transaction adds to, so nothing is counted twice.
 */
import type { ProjectionTable } from '../runner/projection.ts';
import { CHANGE_REQUEST_KNOWN_MS } from './limits.ts';

/** A row stays when its month is over. `month` is `YYYY-MM`. */
export const MONTHS: ProjectionTable = {
  name: 'changes_months',
  key: ['account_id', 'month'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      month text COLLATE "C" NOT NULL,
      changes bigint NOT NULL,
      PRIMARY KEY (account_id, month))`,
  ],
};

/**
 * A request may append to several streams, and its events may come in several batches. `at` is the first one's time.
 */
export const REQUESTS: ProjectionTable = {
  name: 'changes_requests',
  key: ['account_id', 'request_id'],
  compare: 'exact',
  ages: { column: 'at', keptMs: CHANGE_REQUEST_KNOWN_MS },
  create: (table) => [
    `CREATE TABLE ${table} (
      account_id uuid NOT NULL,
      request_id text COLLATE "C" NOT NULL,
      at text COLLATE "C" NOT NULL,
      PRIMARY KEY (account_id, request_id))`,
    `CREATE INDEX ON ${table} (at)`,
  ],
};
