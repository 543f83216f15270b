/**
 * This process's workers: one for the runs, and one for the steps of each workflow, so that slow steps of one workflow
 * delay no other workflow.
 *
 * Invariants: until they are closed, they are created again whenever they end on their own or the server was
 * unreachable. Closing ends within `CLOSE_MS_MAX`, whether the server answers or not.
 */
import { bundleWorkflowCode, NativeConnection, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { untilAborted } from '../../core/kernel/aborted.ts';
import { backoff } from '../../core/kernel/backoff.ts';
import { WORKFLOW_STEPS_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { Log } from '../../core/ports/log.ts';
import { type ActivityContext, createLookActivities, createStepActivities } from './activities.ts';
import { connectionOptions, type TemporalConnection } from './connection-options.ts';
import { stepQueueOf } from './protocol.ts';
import { sdkLogger, useRuntime } from './runtime.ts';

export interface WorkersOptions extends Omit<ActivityContext, 'ended'>, TemporalConnection {
  readonly namespace: string;
  readonly taskQueue: string;
  readonly log: Log;
  /** Returns whether the server answers. A worker whose server does not answer could not be closed in time. */
  readonly isReachable: () => boolean;
  readonly stepsAtOnceMax?: number;
  readonly runsCachedMax?: number;
}

/** Steps are told immediately to end; they may take this long. */
const CLOSE_GRACE_MS = 3_000;
/** How long closing may take. Internal: only the end of the server reaches it. */
const CLOSE_MS_MAX = 5_000;

const REACHABLE_CHECK_MS = 200;
const PAUSE_FIRST_MS = 200;
const PAUSE_LAST_MS = 5_000;
/** Looks at runs at the same time. Internal: further looks wait. */
const LOOKS_AT_ONCE_MAX = 50;
/**
 * Runs kept in memory between their turns; the others are replayed from their history, which is short. Internal: what
 * is not kept is replayed.
 */
const RUNS_CACHED_MAX = 500;

/** Starts the workers; the returned function ends them. */
export function keepWorking(options: WorkersOptions): () => Promise<void> {
  const ending = new AbortController();
  const working = workUntil(options, ending.signal);
  return async () => {
    ending.abort();
    await working;
  };
}

async function workUntil(options: WorkersOptions, ended: AbortSignal): Promise<void> {
  const { pause } = options;
  const pauses = backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
  while (!ended.aborted) {
    while (!options.isReachable() && !ended.aborted) await pause(REACHABLE_CHECK_MS, ended);
    if (ended.aborted) return;
    try {
      await work(options, ended, () => pauses.reset());
    } catch (error) {
      if (!ended.aborted) options.onFault('temporal', error);
    }
    await pause(pauses.next(), ended);
  }
}

/** Runs until the signal, or until a worker ends on its own. */
async function work(options: WorkersOptions, ended: AbortSignal, onRunning: () => void): Promise<void> {
  const bundle = await workflowBundle();
  // The runtime ends when the last connection is closed; with none ever opened it would keep the process from ending.
  useRuntime(options.log);
  const connection = await unlessEnded(ended, NativeConnection.connect(connectionOptions(options)), (late) =>
    late.close(),
  );
  if (connection === null) return;
  const creating = createWorkers({ ...options, ended }, bundle, connection);
  // Workers that are created late are ended as well: those that nobody runs would keep the process from ending.
  const closed = runAndClose(creating, connection, ended, onRunning);
  closed.catch(() => undefined);
  if ((await unlessEnded(ended, creating)) !== null) await closed;
}

async function runAndClose(
  creating: Promise<readonly Worker[]>,
  connection: NativeConnection,
  ended: AbortSignal,
  onRunning: () => void,
): Promise<void> {
  try {
    const workers = await creating;
    onRunning();
    await runUntil(ended, workers);
  } finally {
    await connection.close();
  }
}

/** Runs the workers until the signal, or until one of them ends on its own; resolves when all have ended. */
async function runUntil(ended: AbortSignal, workers: readonly Worker[]): Promise<void> {
  const running = workers.map((worker) => {
    const run = worker.run();
    // Awaited below; until then a rejection must not count as unhandled.
    run.catch(() => undefined);
    return { worker, run };
  });
  try {
    await untilAborted(ended, Promise.race(running.map(({ run }) => run)));
  } finally {
    for (const { worker } of running) if (worker.getState() === 'RUNNING') worker.shutdown();
    await Promise.allSettled(running.map(({ run }) => run));
  }
}

/**
 * Resolves with the call's answer, or null as soon as the signal is aborted: a server that accepts calls and answers
 * none would otherwise delay the end for half a minute. A late answer goes to `onLate`.
 */
async function unlessEnded<Answer>(
  ended: AbortSignal,
  call: Promise<Answer>,
  onLate: (answer: Answer) => Promise<void> = async () => undefined,
): Promise<Answer | null> {
  const answer = await untilAborted(ended, call);
  // Nobody waits for the late answer, nor for its failure.
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
    // A worker that died delays its runs no longer than this.
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
  const created = await Promise.allSettled([runs, ...steps]);
  const failed = created.find(({ status }) => status === 'rejected');
  const workers = created.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (failed?.status !== 'rejected') return workers;
  await runUntil(AbortSignal.abort(), workers);
  throw failed.reason;
}

let bundling: Promise<WorkflowBundleWithSourceMap> | null = null;

/** Returns the workflow's code as Temporal's workers run it; built once in a process, which takes a second. */
export function workflowBundle(): Promise<WorkflowBundleWithSourceMap> {
  bundling ??= bundleWorkflowCode({ workflowsPath: `${import.meta.dirname}/run.ts`, logger: sdkLogger }).catch(
    (error: unknown) => {
      bundling = null;
      throw error;
    },
  );
  return bundling;
}
