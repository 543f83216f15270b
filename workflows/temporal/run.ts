/**
 * The one workflow that Temporal knows: it carries a run of any of ours, by looking at its stream, waiting, and having
 * the due step carried out.
 *
 * Must stay true: it is pure, and replayed for as long as runs last: a change of what it asks of Temporal breaks the
 * histories in test/golden/temporal unless it stands behind `patched`. It remembers nothing that a look would not tell.
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
  MOVED,
  type Moved,
  type RunName,
  STANDING,
  type Standing,
  type StandingWait,
  type StepActivities,
  stepQueueOf,
} from './protocol.ts';

/** A run begins a new history when it has more events: Temporal warns at 10,240 and ends it at 51,200. */
const HISTORY_EVENTS_MAX = 500;
/** What a step that moved its stream usually still takes: its answer spares another look. */
const STEP_ENDS_WITHIN = '2 seconds';
const NOTHING_TOLD: Moved = { revision: -1, version: 0 };
const RETRY = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '60 seconds' } as const;

const { look } = proxyActivities<LookActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { ...RETRY, maximumInterval: '10 seconds' },
});

/** Ends when nothing is waited for; the next event begins it anew. */
export async function run(name: RunName): Promise<void> {
  const { carryOut } = proxyActivities<StepActivities>({
    taskQueue: stepQueueOf(workflowInfo().taskQueue, name.workflow),
    startToCloseTimeout: '10 minutes',
    // A worker that died is known by its silence; they speak every 2 seconds.
    heartbeatTimeout: '6 seconds',
    retry: RETRY,
  });
  const now: Memory = { told: NOTHING_TOLD, asked: NOTHING_TOLD, standing: null };

  async function ask(activity: () => Promise<Standing>): Promise<void> {
    now.asked = now.told;
    now.standing = await activity();
  }

  /**
   * Resolves when the step was carried out, or soon after its stream moved: then whoever moved it, be it the step itself,
   * decides what comes next, and what is still under way finds that by itself.
   */
  async function askForStep({ revision }: Standing, { step, dueAt }: StandingWait): Promise<void> {
    now.asked = now.told;
    const carrying = carryOut({ ...name, revision, step, dueAt });
    const scope = new CancellationScope();
    const overtaken = scope.run(async () => {
      await condition(() => isBehind(now));
      await sleep(STEP_ENDS_WITHIN);
      return null;
    });
    const answer = await Promise.race([carrying, overtaken]);
    if (answer !== null) now.standing = answer;
    // Neither is waited for any more, nor is what becomes of it.
    for (const other of [carrying, overtaken]) other.catch(() => undefined);
    scope.cancel();
  }

  setHandler(defineQuery<Standing | null>(STANDING), () => now.standing);
  setHandler(defineSignal<[Moved]>(MOVED), ({ revision, version }) => {
    now.told = { revision: Math.max(revision, now.told.revision), version: Math.max(version, now.told.version) };
  });

  let early = false;
  for (;;) {
    const { standing } = now;
    if (standing === null || isBehind(now)) {
      await ask(() => look(name));
      early = false;
      continue;
    }
    if (standing.wait === null || workflowInfo().historyLength > HISTORY_EVENTS_MAX) {
      await condition(allHandlersFinished);
      if (isBehind(now)) continue;
      if (standing.wait === null) return;
      await continueAsNew<typeof run>(name);
    }
    const { wait } = standing;
    if (wait === null) return;
    const spanMs = spanUntil(wait, early);
    if (spanMs > 0 && (await condition(() => isBehind(now), spanMs))) continue;
    await askForStep(standing, wait);
    // After a step the stream stands elsewhere: if it does not, this program's clock is behind Temporal's.
    early = now.standing?.revision === standing.revision;
  }
}

interface Memory {
  /** The newest there was word of, and what it was when the last look began. */
  told: Moved;
  asked: Moved;
  /** Null before the first look. */
  standing: Standing | null;
}

/** Whether a look would find something new. What one that began after the word did not find is another log's. */
function isBehind({ told, asked, standing }: Memory): boolean {
  if (standing === null) return true;
  return told !== asked && (told.revision > standing.revision || told.version > standing.version);
}

/** By Temporal's clock, or by ours where that one was found to be ahead; the first knows how old the answer is. */
function spanUntil({ dueAt, restMs }: StandingWait, early: boolean): number {
  return early ? restMs : Math.min(restMs, Date.parse(dueAt) - Date.now());
}
