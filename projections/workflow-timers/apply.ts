/**
 * Folds the streams of workflows into what each run waits for, by the workflow's own `next`.
 *
 * Invariants: a row is a function of its stream's events alone. Each event of the stream stores its revision in the
 * row, so that a step that was decided at an older revision is recognized.
 */
import { categoryOf, entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { timestamp } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { Wait, Workflow } from '../../core/ports/workflows.ts';
import { prepared } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { timerTables } from './table.ts';

/** The version includes those of all workflows: a change of any one rebuilds the model. */
export function createTimersProjection(workflows: readonly Workflow[]): Projection {
  return {
    name: 'timers',
    version: workflows.reduce((sum, { version }) => sum + version, 1),
    categories: [...new Set(workflows.map(({ category }) => category))],
    tables: timerTables,
    onPoison: 'park',
    open: (table) => ({
      prepare: (events, database) => prepare(workflows, table, events, database),
    }),
  };
}

/** A run of a workflow, and what it waits for. */
interface Run {
  readonly workflow: string;
  readonly workflow_id: string;
  revision: number;
  wait: Wait | null;
}

async function prepare(
  workflows: readonly Workflow[],
  table: TableOf,
  events: readonly RecordedEvent[],
  database: Queryable,
): Promise<Write> {
  const concerned = events.flatMap((event) =>
    workflows.flatMap((workflow) => (workflow.category === categoryOf(event.stream) ? [{ workflow, event }] : [])),
  );
  const runs = await readRuns(
    table,
    concerned.map(({ workflow, event }) => ({ workflow: workflow.name, workflow_id: entityIdOf(event.stream) })),
    database,
  );
  for (const { workflow, event } of concerned) {
    const run = runs.get(keyOf(workflow.name, entityIdOf(event.stream)));
    if (run === undefined) throw new TypeError(`${event.stream} is not among the runs that were read`);
    run.wait = workflow.next(run.wait, event);
    run.revision = event.revision;
  }
  return toWrite(table, [...runs.values()]);
}

function keyOf(workflow: string, id: string): string {
  return `${workflow} ${id}`;
}

async function readRuns(
  table: TableOf,
  wanted: readonly Pick<Run, 'workflow' | 'workflow_id'>[],
  database: Queryable,
): Promise<ReadonlyMap<string, Run>> {
  const runs = new Map<string, Run>();
  for (const { workflow, workflow_id } of wanted) {
    runs.set(keyOf(workflow, workflow_id), { workflow, workflow_id, revision: 0, wait: null });
  }
  const { rows } = await database.query(
    prepared(
      `SELECT workflow, workflow_id, step, due_at, memory, revision FROM ${table('timers')}
       JOIN json_to_recordset($1) AS w(workflow text, workflow_id text) USING (workflow, workflow_id)`,
      [JSON.stringify([...runs.values()].map(({ workflow, workflow_id }) => ({ workflow, workflow_id })))],
    ),
  );
  for (const row of rows) {
    const [workflow, workflow_id] = [row['workflow'] as string, row['workflow_id'] as string];
    const revision = row['revision'] as number;
    const wait = {
      step: row['step'] as string,
      dueAt: timestamp(row['due_at'] as string),
      memory: row['memory'] as JsonObject,
    };
    runs.set(keyOf(workflow, workflow_id), { workflow, workflow_id, revision, wait });
  }
  return runs;
}

interface StoredRun {
  readonly workflow: string;
  readonly workflow_id: string;
  readonly revision: number;
  readonly step: string;
  readonly due_at: string;
  readonly memory: JsonObject;
}

function toWrite(table: TableOf, runs: readonly Run[]): Write {
  const waiting = runs.flatMap(({ workflow, workflow_id, revision, wait }): StoredRun[] =>
    wait === null
      ? []
      : [{ workflow, workflow_id, revision, step: wait.step, due_at: wait.dueAt, memory: wait.memory }],
  );
  const timers = table('timers');
  return {
    lists: [
      {
        items: runs.filter(({ wait }) => wait === null),
        text: `DELETE FROM ${timers} AS t USING json_to_recordset($1) AS w(workflow text, workflow_id text)
          WHERE t.workflow = w.workflow AND t.workflow_id = w.workflow_id`,
      },
      {
        items: waiting,
        text: `INSERT INTO ${timers} SELECT * FROM json_to_recordset($1) AS w(workflow text, workflow_id text,
            step text, due_at text, memory json, revision integer)
          ON CONFLICT (workflow, workflow_id) DO UPDATE SET step = excluded.step, due_at = excluded.due_at,
            memory = excluded.memory, revision = excluded.revision`,
      },
    ],
  };
}
