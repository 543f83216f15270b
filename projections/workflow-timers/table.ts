/** The timers of workflows: one row for each run that waits. */
import type { ProjectionTable } from '../runner/projection.ts';

export const timerTables: readonly ProjectionTable[] = [
  {
    name: 'timers',
    key: ['workflow', 'workflow_id'],
    compare: 'exact',
    // `due_at` has the one form of instants whose text sorts as the instants do. `revision` is that of the stream's
    // last event.
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
