/**
 * The table of who signed in and what was refused: a row for each fact that no `UsageRecorded` sums.
 *
 * Invariants: a `UsageRecorded` takes the place of what its account appended before it and up to its day, as for
 * transfer (projections/unsummed-transfer.ts), so nothing has to be pruned here.
 */
import type { ProjectionTable } from '../runner/projection.ts';

export const signInsTable: ProjectionTable = {
  name: 'sign_in_facts',
  key: ['event_id', 'index'],
  compare: 'exact',
  create: (table) => [
    `CREATE TABLE ${table} (
      event_id uuid NOT NULL,
      index integer NOT NULL,
      account_id uuid NOT NULL,
      appended_on text COLLATE "C" NOT NULL,
      at text COLLATE "C" NOT NULL,
      kind text COLLATE "C" NOT NULL,
      factors text COLLATE "C" NOT NULL,
      reason text COLLATE "C",
      token_id uuid,
      count integer NOT NULL,
      source_address_ref text,
      user_agent_ref text,
      PRIMARY KEY (event_id, index))`,
    `CREATE INDEX ON ${table} (account_id, kind, at)`,
  ],
};
