/**
 * This process's workers: one that carries the runs, and one for the steps of each workflow, so that the slow steps of
 * one hold up no other's.
 *
 * Must stay true: they are made anew whenever they end by themselves or the server could not be reached, until they are
 * closed; closing ends within `CLOSE_MS_MAX`, whether the server answers or not.
 */
import { bundleWorkflowCode, NativeConnection, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { aborted } from '../../core/kernel/aborted.ts';
import { WORKFLOW_STEPS_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { Log } from '../../core/ports/log.ts';
import { type ActivityContext, createLookActivities, createStepActivities } from './activities.ts';
import { type Line, lineOptions } from './connection-options.ts';
import { pause } from './pause.ts';
import { stepQueueOf } from './protocol.ts';
import { sdkLogger, useRuntime } from './runtime.ts';

export interface WorkersOptions extends Omit<ActivityContext, 'ended'>, Line {
  readonly namespace: string;
  readonly taskQueue: string;
  readonly log: Log;
  /** Whether the server answers: a worker's line to one that does not could not be given up in time. */
  readonly isReachable: () => boolean;
  readonly stepsAtOnceMax?: number;
  readonly runsCachedMax?: number;
}

/** Steps are told at once that they should end, and may take so long to. */
const CLOSE_GRACE_MS = 3_000;
const CLOSE_MS_MAX = 5_000;
const LOOK_MS = 200;
const PAUSE_FIRST_MS = 200;
const PAUSE_LAST_MS = 5_000;
const LOOKS_AT_ONCE_MAX = 50;
/** Runs kept in memory between their turns; others are replayed from their history, which is short. */
const RUNS_CACHED_MAX = 500;

/** Begins to work; the function returned ends it. */
export function keepWorking(options: WorkersOptions): () => Promise<void> {
  const ending = new AbortController();
  const working = workUntil(options, ending.signal);
  return async () => {
    ending.abort();
    await working;
  };
}

async function workUntil(options: WorkersOptions, ended: AbortSignal): Promise<void> {
  let pauseMs = PAUSE_FIRST_MS;
  while (!ended.aborted) {
    while (!options.isReachable() && !ended.aborted) await pause(LOOK_MS, ended);
    if (ended.aborted) return;
    try {
      await work(options, ended, () => {
        pauseMs = PAUSE_FIRST_MS;
      });
    } catch (error) {
      if (!ended.aborted) options.onFault('temporal', error);
    }
    await pause(pauseMs, ended);
    pauseMs = Math.min(pauseMs * 2, PAUSE_LAST_MS);
  }
}

/** Until the signal, or until a worker ends by itself. */
async function work(options: WorkersOptions, ended: AbortSignal, onRunning: () => void): Promise<void> {
  const bundle = await workflowBundle();
  // It ends with the last line that is closed: without any it would keep the process from ending.
  useRuntime(options.log);
  const connection = await unlessEnded(ended, NativeConnection.connect(lineOptions(options)), (late) => late.close());
  if (connection === null) return;
  const running: { readonly worker: Worker; readonly run: Promise<void> }[] = [];
  try {
    const workers = await unlessEnded(ended, createWorkers({ ...options, ended }, bundle, connection));
    for (const worker of workers ?? []) {
      const run = worker.run();
      // Looked at below; until then it must not count as unheard.
      run.catch(() => undefined);
      running.push({ worker, run });
    }
    onRunning();
    await Promise.race([aborted(ended), ...running.map(({ run }) => run)]);
  } finally {
    for (const { worker } of running) if (worker.getState() === 'RUNNING') worker.shutdown();
    await Promise.allSettled(running.map(({ run }) => run));
    await connection.close();
  }
}

/**
 * What comes of a call, or null once the signal is aborted: a server that takes calls and answers none would hold up the
 * end for half a minute. What comes late is handed over.
 */
async function unlessEnded<Answer>(
  ended: AbortSignal,
  call: Promise<Answer>,
  onLate: (answer: Answer) => Promise<void> = async () => undefined,
): Promise<Answer | null> {
  const answer = await Promise.race([call, aborted(ended).then(() => null)]);
  // What becomes of it then is nobody's concern any more.
  if (answer === null) call.then(onLate).catch(() => undefined);
  return answer;
}

async function createWorkers(
  options: WorkersOptions & { readonly ended: AbortSignal },
  workflowBundle: WorkflowBundleWithSourceMap,
  connection: NativeConnection,
): Promise<readonly Worker[]> {
  const { namespace, taskQueue, workflows, stepsAtOnceMax = WORKFLOW_STEPS_AT_ONCE_MAX } = options;
  const { runsCachedMax = RUNS_CACHED_MAX } = options;
  const common = { connection, namespace, shutdownGraceTime: CLOSE_GRACE_MS, shutdownForceTime: CLOSE_MS_MAX };
  const runs = Worker.create({
    ...common,
    taskQueue,
    workflowBundle,
    activities: createLookActivities(options),
    maxConcurrentActivityTaskExecutions: LOOKS_AT_ONCE_MAX,
    maxCachedWorkflows: runsCachedMax,
    // A worker that died holds up its runs for no longer than that.
    stickyQueueScheduleToStartTimeout: '500ms',
  });
  const activities = createStepActivities(options);
  const steps = workflows.map(({ workflow }) =>
    Worker.create({
      ...common,
      taskQueue: stepQueueOf(taskQueue, workflow.name),
      activities,
      maxConcurrentActivityTaskExecutions: stepsAtOnceMax,
    }),
  );
  return Promise.all([runs, ...steps]);
}

let bundling: Promise<WorkflowBundleWithSourceMap> | null = null;

/** The workflow's code as Temporal's workers run it: made once in a process, in a second. */
export function workflowBundle(): Promise<WorkflowBundleWithSourceMap> {
  bundling ??= bundleWorkflowCode({ workflowsPath: `${import.meta.dirname}/run.ts`, logger: sdkLogger }).catch(
    (error: unknown) => {
      bundling = null;
      throw error;
    },
  );
  return bundling;
}
