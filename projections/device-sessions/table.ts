/** The table that finds a device login by its user code: one row for each login that waits for its user. */
import type { ProjectionTable } from '../runner/projection.ts';

export const deviceSessionTables: readonly ProjectionTable[] = [
  {
    name: 'device_sessions',
    key: ['id'],
    compare: 'exact',
    create: (table) => [
      `CREATE TABLE ${table} (
        id uuid PRIMARY KEY,
        user_code text NOT NULL,
        expires_at text COLLATE "C" NOT NULL)`,
      `CREATE INDEX ON ${table} (user_code)`,
    ],
  },
];
