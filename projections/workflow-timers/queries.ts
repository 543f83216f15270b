/** The queries of timers, for the engine that carries the steps out (core/ports/workflows.ts). */
import type { Timestamp } from '../../core/kernel/ids.ts';
import { READ_WAIT_MS } from '../../core/kernel/limits.ts';
import type { OverdueTimers, Timer, Timers } from '../../core/ports/workflows.ts';
import { createLiveReader, type ReadQuery } from '../live-reader.ts';
import type { Projection, Queryable } from '../runner/projection.ts';
import type { ProjectionRunner } from '../runner/runner.ts';

const earliestQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(t), '[]') FROM (
    SELECT workflow_id AS id, revision, step, due_at AS "dueAt" FROM ${table('timers')}
    WHERE workflow = $1 ORDER BY due_at, workflow_id LIMIT $2) AS t`,
};

const overdueQuery: ReadQuery = {
  answer: (table) => `SELECT json_build_object('count', count(*), 'oldestAt', min(due_at))
    FROM ${table('timers')} WHERE due_at <= $1`,
};

export interface TimersOptions {
  readonly database: Queryable;
  /** The same object that the runner keeps. */
  readonly projection: Projection;
  /** This process's runner. */
  readonly runner: Pick<ProjectionRunner, 'waitFor' | 'knownPosition' | 'positionWentBack'>;
}

export function createTimers({ database, projection, runner }: TimersOptions): Timers & OverdueTimers {
  const reader = createLiveReader(database, projection, runner);
  return {
    caughtUp: (position) => runner.waitFor(position, READ_WAIT_MS, [projection.name]),
    async earliest(workflow, limit) {
      // A parked stream keeps its old timer. So the engine may carry a step out again, which is harmless: each step
      // reads its stream first and is repeatable.
      const { value } = await reader.read(earliestQuery, [workflow, limit], () => ({ streams: [] }));
      return value as readonly Timer[];
    },
    async overdue(now) {
      const { value } = await reader.read(overdueQuery, [now], () => ({ streams: [] }));
      return value as { readonly count: number; readonly oldestAt: Timestamp | null };
    },
  };
}
