/**
 * The one workflow that Temporal runs. It carries a run of any of this program's workflows: reads the stream's state,
 * waits, and has the due step carried out.
 *
 * Invariants: it is deterministic, because Temporal replays it for as long as runs last. A change of the commands
 * it sends to Temporal breaks the histories in test/golden/temporal, unless the change is behind `patched`. It
 * remembers nothing that reading the stream again would not return.
 */
import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  proxyActivities,
  setHandler,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import {
  type LookActivities,
  MOVED_SIGNAL,
  type Moved,
  type RunName,
  type RunState,
  type RunWait,
  STATE_QUERY,
  type StepActivities,
  stepQueueOf,
} from './protocol.ts';

/**
 * A run with more events continues in a new history: Temporal warns at 10,240 events and ends the run at 51,200.
 * Internal: the run goes on in a new history.
 */
const HISTORY_EVENTS_MAX = 500;
/**
 * The time that a step usually still takes after it has moved its stream: its answer makes another look unnecessary.
 */
const STEP_ENDS_WITHIN = '2 seconds';
const NOTHING_NOTIFIED: Moved = { revision: -1, version: 0 };
const RETRY = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '60 seconds' } as const;

const { look } = proxyActivities<LookActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { ...RETRY, maximumInterval: '10 seconds' },
});

/** Ends when nothing is waited for; the feed starts the run again at the next event. */
export async function run(name: RunName): Promise<void> {
  const { carryOut } = proxyActivities<StepActivities>({
    taskQueue: stepQueueOf(workflowInfo().taskQueue, name.workflow),
    startToCloseTimeout: '10 minutes',
    // Workers send a heartbeat every 2 seconds, so this one's silence means that the worker died.
    heartbeatTimeout: '6 seconds',
    retry: RETRY,
  });
  const memory: Memory = { notified: NOTHING_NOTIFIED, lookedAfter: NOTHING_NOTIFIED, state: null };

  async function readState(activity: () => Promise<RunState>): Promise<void> {
    memory.lookedAfter = memory.notified;
    memory.state = await activity();
  }

  /**
   * Resolves when the step was carried out, or soon after its stream moved. The event that moved the stream, the step's
   * own or another, decides what comes next; a step that is still running finds that event itself.
   */
  async function carryOutStep({ revision }: RunState, { step, dueAt }: RunWait): Promise<void> {
    memory.lookedAfter = memory.notified;
    const carriedOut = carryOut({ ...name, revision, step, dueAt });
    const scope = new CancellationScope();
    const movedOn = scope.run(async () => {
      await condition(() => isBehind(memory));
      await sleep(STEP_ENDS_WITHIN);
      return null;
    });
    const answer = await Promise.race([carriedOut, movedOn]);
    if (answer !== null) memory.state = answer;
    // Nothing waits for the slower one any more, so its failure must not count as unhandled.
    for (const other of [carriedOut, movedOn]) other.catch(() => undefined);
    scope.cancel();
  }

  setHandler(defineQuery<RunState | null>(STATE_QUERY), () => memory.state);
  setHandler(defineSignal<[Moved]>(MOVED_SIGNAL), ({ revision, version }) => {
    memory.notified = {
      revision: Math.max(revision, memory.notified.revision),
      version: Math.max(version, memory.notified.version),
    };
  });

  let early = false;
  for (;;) {
    const { state } = memory;
    if (state === null || isBehind(memory)) {
      await readState(() => look(name));
      early = false;
      continue;
    }
    if (state.wait === null || workflowInfo().historyLength > HISTORY_EVENTS_MAX) {
      await condition(allHandlersFinished);
      if (isBehind(memory)) continue;
      if (state.wait === null) return;
      await continueAsNew<typeof run>(name);
    }
    const { wait } = state;
    if (wait === null) return;
    const waitMs = msUntil(wait, early);
    if (waitMs > 0 && (await condition(() => isBehind(memory), waitMs))) continue;
    await carryOutStep(state, wait);
    // A step changes the stream's revision. If it did not, this program's clock is behind Temporal's.
    early = memory.state?.revision === state.revision;
  }
}

interface Memory {
  /** The newest notice, and the newest one when the last look began. */
  notified: Moved;
  lookedAfter: Moved;
  /** Null before the first look. */
  state: RunState | null;
}

/**
 * Returns whether another look could find something new. A notice that a later look did not confirm is from another
 * log.
 */
function isBehind({ notified, lookedAfter, state }: Memory): boolean {
  if (state === null) return true;
  return notified !== lookedAfter && (notified.revision > state.revision || notified.version > state.version);
}

/**
 * Returns the time to wait. Temporal's clock counts, too, because the state may be old when it arrives; except after a
 * step that was sent too early: then Temporal's clock is ahead, and only this program's counts.
 */
function msUntil({ dueAt, restMs }: RunWait, early: boolean): number {
  return early ? restMs : Math.min(restMs, Date.parse(dueAt) - Date.now());
}
