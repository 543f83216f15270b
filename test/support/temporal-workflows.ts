/**
 * The workflow engine on Temporal for tests: a test server whose time follows the test's clock, and workers that each
 * connect through a proxy of their own, which a test can cut.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowExecutionDescription } from '@temporalio/client';
import { defaultPayloadConverter, WorkflowNotFoundError } from '@temporalio/common';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { tsToMs } from '@temporalio/common/lib/time.js';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import pRetry from 'p-retry';
import { pause } from '../../adapters/node/pause.ts';
import { entityIdOf, LOG_START } from '../../core/kernel/envelope.ts';
import { msBetween, plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { CarriedOutWorkflow } from '../../core/ports/workflows.ts';
import { startTemporalEngine } from '../../workflows/temporal/engine.ts';
import { type RunState, runIdOf } from '../../workflows/temporal/protocol.ts';
import { readRunState } from '../../workflows/temporal/read-run-state.ts';
import { useRuntime } from '../../workflows/temporal/runtime.ts';
import type { OpenWorkflows, Worker } from '../contract/workflows.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { killable } from './killable-steps.ts';
import { keepLog } from './log.ts';
import { createMemoryPolicyMarks } from './memory/delivery-store.ts';
import { createMemoryEventStore } from './memory/event-store.ts';
import { until } from './read-models.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { createTestClock, type TestClock } from './test-clock.ts';
import { createTestLeads } from './test-lead.ts';
import { findTool } from './tools.ts';

/** Starts a test server. Tests must not share one: all its clients share its clock. */
async function openTestServer(context: Ending): Promise<TestWorkflowEnvironment> {
  const path = findTool('temporal-test-server');
  if (path === null) throw new TypeError('temporal-test-server is not installed');
  useRuntime(keepLog());
  // Temporal's SDK gives it five seconds to be ready, which is not always enough on a busy machine.
  const server = await pRetry(
    () => TestWorkflowEnvironment.createTimeSkipping({ server: { executable: { type: 'existing-path', path } } }),
    { retries: 4, minTimeout: 0, shouldRetry: ({ error }) => error.message.includes('did not start within') },
  );
  cleanUp(context, () => server.teardown());
  return server;
}

export interface OpenOnTemporal extends OpenWorkflows {
  /** Starts a worker; `stepsAtOnceMax` bounds how many steps of one workflow it runs at a time. */
  start(workflows: readonly CarriedOutWorkflow[], stepsAtOnceMax?: number): Promise<Worker>;
  /** Returns the history of the newest run for that id, as JSON. */
  historyOf(id: string): Promise<string>;
}

/** Opens a test server, an empty log and workers that run one workflow. */
export async function openOnTemporal(context: Ending): Promise<OpenOnTemporal> {
  const server = await openTestServer(context);
  const events = createMemoryEventStore();
  const marks = createMemoryPolicyMarks();
  const leads = createTestLeads();
  const proxies = new Set<TcpProxy>();
  const pauses: Pauses = { restMs: [] };
  const ended = new AbortController();
  const { clock, followed } = await clockOf(context, server, pauses);
  let workflow: CarriedOutWorkflow['workflow'] | null = null;
  let markedUpTo = LOG_START;
  const watched: PolicyMarks = {
    ...marks,
    save: async (policy, mark) => {
      await marks.save(policy, mark);
      markedUpTo = mark.position;
    },
  };

  async function start(workflows: readonly CarriedOutWorkflow[], stepsAtOnceMax?: number): Promise<Worker> {
    workflow = workflows[0]?.workflow ?? null;
    const proxy = await startTcpProxy(targetOf(server));
    proxies.add(proxy);
    const dead = new AbortController();
    const engine = startTemporalEngine({
      workflows: workflows.map((carriedOut) => killable(carriedOut, dead.signal)),
      ...{ events, clock, alarm: clock, pause, marks: watched, log: keepLog() },
      lead: leads.of(dead.signal),
      onFault: () => undefined,
      address: `127.0.0.1:${proxy.port}`,
      namespace: 'default',
      // The test server never moves a workflow task from a dead worker's own queue to another worker; a real server
      // does after half a second. With no cached runs, workers have no queue of their own.
      runsCachedMax: 0,
      ...(stepsAtOnceMax === undefined ? {} : { stepsAtOnceMax }),
    });
    const end = async (): Promise<void> => {
      await engine.close();
      proxies.delete(proxy);
      await proxy.close();
    };
    cleanUp(context, end);
    const kill = async (): Promise<void> => {
      proxies.delete(proxy);
      await proxy.close();
      dead.abort();
    };
    return { stop: end, kill };
  }

  async function runIds(): Promise<readonly string[]> {
    const all = await events.readAll(LOG_START, 1_000);
    return [...new Set(all.map(({ stream }) => entityIdOf(stream)))];
  }

  function handleOf(id: string) {
    return server.client.workflow.getHandle(runIdOf({ workflow: workflow?.name ?? '', id }));
  }

  async function waits(id: string, at: Timestamp): Promise<boolean> {
    if (workflow === null) throw new TypeError('No worker was started');
    const truth = await readRunState({ events, clock }, workflow, id);
    if (truth.wait?.dueAt !== at) return false;
    return (await standingOf(id))?.revision === truth.revision;
  }

  /**
   * Reads the last step result from the run's history: a query would wait for a worker, which may be dead. Null while
   * the run has yet to act on a result: a test that stopped the worker then would not stop it while the run waits, and
   * the test server does not recover from a task that ends with its worker while a step's result comes in.
   */
  async function standingOf(id: string): Promise<RunState | null> {
    if ((await describe(id)) === null) return null;
    const history = (await handleOf(id).fetchHistory()).events ?? [];
    const turnBegan = history.findLastIndex((event) => event.workflowTaskScheduledEventAttributes != null);
    const turnEnded = history.findLastIndex((event) => event.workflowTaskCompletedEventAttributes != null);
    if (turnEnded < turnBegan) return null;
    const answers = history.flatMap(({ activityTaskCompletedEventAttributes: completed }) => {
      return completed?.result?.payloads ?? [];
    });
    const last = answers.at(-1);
    return last === undefined ? null : defaultPayloadConverter.fromPayload<RunState>(last);
  }

  async function runs(id: string): Promise<boolean> {
    return (await describe(id))?.status.name === 'RUNNING';
  }

  async function pendingActivities(id: string) {
    return (await describe(id))?.raw.pendingActivities ?? [];
  }

  /** Returns null when the run was never started. */
  async function describe(id: string): Promise<WorkflowExecutionDescription | null> {
    try {
      return await handleOf(id).describe();
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  }

  /**
   * Polls how long Temporal still waits before it retries each failed step, from the start time that the server
   * reports.
   */
  async function watchPauses(): Promise<void> {
    while (!ended.signal.aborted) {
      const seen: number[] = [];
      for (const id of await runIds()) {
        for (const { attempt, lastFailure, lastStartedTime } of await pendingActivities(id)) {
          if (lastFailure == null || lastStartedTime == null) continue;
          const spanMs = Math.min(1_000 * 2 ** ((attempt ?? 2) - 2), 60_000);
          seen.push(tsToMs(lastStartedTime) + spanMs - (await server.currentTimeMs()));
        }
      }
      pauses.restMs = seen.filter((restMs) => restMs > 0);
      await sleep(20);
    }
  }

  const watching = watchPauses();
  cleanUp(context, async () => {
    ended.abort();
    await watching;
  });
  return {
    events,
    clock,
    start,
    clockFollowed: followed,
    waitsUntil: (at) =>
      until(async () => {
        for (const id of await runIds()) if (await waits(id, at)) return true;
        return false;
      }),
    waitsForNothing: async () => {
      await until(async () => markedUpTo === (await events.head()));
      await until(async () => {
        for (const id of await runIds()) if (await runs(id)) return false;
        return clock.awaited().length === 0;
      });
    },
    historyOf: async (id) => historyToJSON(await handleOf(id).fetchHistory()),
    crashServer: async () => {
      for (const proxy of proxies) proxy.cutAll();
    },
  };
}

function targetOf({ address }: TestWorkflowEnvironment): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(`tcp://${address}`);
  return { host: hostname === 'localhost' ? '127.0.0.1' : hostname, port: Number(port) };
}

/** How long the server still waits between the attempts of steps, by its own clock. */
interface Pauses {
  restMs: readonly number[];
}

interface ServerClock {
  /** Moves the server's clock, too, soon after a test moves it. */
  readonly clock: TestClock;
  /**
   * Resolves when the server's clock has moved as far as the test's. It moves while no activity runs, and on its way
   * loses the task of a run whose timer fires while a signal arrives.
   */
  followed(): Promise<void>;
}

/**
 * Returns a clock that also moves the server's clock when a test moves it. The server moves at most to the end of the
 * next retry wait, so that later waits do not end with it.
 */
async function clockOf(context: Ending, server: TestWorkflowEnvironment, pauses: Pauses): Promise<ServerClock> {
  const clock = createTestClock(timestamp(new Date(await server.currentTimeMs()).toISOString()));
  let skipping = Promise.resolve();
  const skip = (ms: number): void => {
    if (ms > 0) skipping = skipping.then(() => skipNow(Math.min(ms, ...pauses.restMs)));
  };
  const ended = new AbortController();
  const skipNow = async (ms: number): Promise<void> => {
    if (ended.signal.aborted) return;
    try {
      await server.connection.withAbortSignal(ended.signal, () => server.sleep(ms));
    } catch (error) {
      if (!ended.signal.aborted) throw error;
    }
  };
  cleanUp(context, async () => {
    ended.abort();
    await skipping;
  });
  const moving: TestClock = {
    ...clock,
    advance: (ms) => {
      clock.advance(ms);
      skip(ms);
    },
    set: (to) => {
      const ms = msBetween(clock.now(), to);
      clock.set(to);
      skip(ms);
    },
    awaited: () => [...clock.awaited(), ...pauses.restMs.map((restMs) => plusMs(clock.now(), Math.ceil(restMs)))],
  };
  return { clock: moving, followed: () => skipping };
}
