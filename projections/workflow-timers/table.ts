/** What every run of a workflow waits for: one row for each that waits. */
import type { ProjectionTable } from '../runner/projection.ts';

export const timerTables: readonly ProjectionTable[] = [
  {
    name: 'timers',
    key: ['workflow', 'workflow_id'],
    compare: 'exact',
    // Instants in the one form that sorts as they do. `revision` is that of the last event the row was decided by.
    create: (table) => [
      `CREATE TABLE ${table} (
        workflow text COLLATE "C" NOT NULL,
        workflow_id text COLLATE "C" NOT NULL,
        step text NOT NULL,
        due_at text COLLATE "C" NOT NULL,
        memory json NOT NULL,
        revision integer NOT NULL,
        PRIMARY KEY (workflow, workflow_id))`,
      `CREATE INDEX ON ${table} (workflow, due_at, workflow_id)`,
    ],
  },
];
