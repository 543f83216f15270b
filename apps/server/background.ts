/**
 * What runs in the background: everything that a process does while no request waits for it.
 *
 * `PERIODIC` has a row for each piece of work that runs at intervals, and `startPeriodic` starts it with the row's
 * interval. `OTHER_WORK` has a row for each piece that starts in another way.
 *
 * Invariants: a failed run of a row of `PERIODIC` has the row's name in the log and in `strata_faults_total`, so these
 * names never change. Any number of processes may run a row at the same time. A test compares both tables with what the
 * code starts, and with the metrics, tables and policies that exist.
 */
import type { Closer } from './closer.ts';
import type { Metrics } from './metrics.ts';
import { every } from './periodic.ts';

/** How often nodes tell each other what accounts spent with them. Internal: it is the pace of background work. */
const RATE_EXCHANGE_INTERVAL_MS = 3_000;

/**
 * Where an operator sees the last success: in a metric, in a part of `/readyz`, in a row of the table `policy_marks`,
 * which holds the position in the log up to which the work is done, in another table, or in a folder of the platform's
 * store. Every row of `PERIODIC` is in the metric as well, by its name, for as long as the process runs.
 */
type LastSuccess =
  | `metric ${string}`
  | `/readyz ${string}`
  | `policy_marks ${string}`
  | `table ${string}`
  | `store ${string}`
  | 'nowhere';

interface BackgroundWork {
  /** The processes that do it: those with the role `worker`, or all. */
  readonly runsOn: 'worker' | 'every node';
  readonly does: string;
  readonly lastSuccess: LastSuccess;
}

export interface PeriodicWork extends BackgroundWork {
  readonly everyMs: number;
  /** How long after the start the first run comes; absent: `everyMs`. */
  readonly firstMs?: number;
}

export interface OtherWork extends BackgroundWork {
  readonly when: 'before the first request' | 'from start to stop' | 'behind a request';
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
/** The first run of rare work: a server that restarts often would otherwise never reach it. */
const RARE_FIRST_MS = 20 * MINUTE_MS;

const LAST_SUCCESS_METRIC = 'metric strata_background_last_success_timestamp_seconds';

export const PERIODIC = {
  // Each node's own state.
  flush: {
    everyMs: MINUTE_MS,
    runsOn: 'every node',
    does: 'Writes the bytes that were read and the last use of tokens, which a node collects in memory.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'rate-exchange': {
    everyMs: RATE_EXCHANGE_INTERVAL_MS,
    runsOn: 'every node',
    does: 'Exchanges with other nodes what each account spent of its rates.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'cache-drops': {
    everyMs: MINUTE_MS,
    runsOn: 'every node',
    does: 'Drops what the node has cached of repositories whose layers were removed; it also runs once at the start.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'tls-renewal': {
    everyMs: 10 * SECOND_MS,
    runsOn: 'every node',
    does: 'Looks for a renewed TLS certificate, if the node has one.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'storage-look': {
    // A store that is away is shown within a quarter of a minute.
    everyMs: 10 * SECOND_MS,
    firstMs: SECOND_MS,
    runsOn: 'every node',
    does: 'Looks whether the store of layers answers, and how much room the disks have.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'layers-check': {
    // It sends some 5 MiB to a bucket that was found to lack something.
    everyMs: 10 * MINUTE_MS,
    runsOn: 'every node',
    does: "Tries again what pushes need of the platform's bucket, until a check finds it whole.",
    lastSuccess: LAST_SUCCESS_METRIC,
  },

  // Repositories, their layers and their manifests.
  deletions: {
    // A deletion that its request left unfinished is finished between one and two intervals later.
    everyMs: 5 * SECOND_MS,
    runsOn: 'worker',
    does: 'Finishes deletions of repositories whose request ended before it released the name.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'workflow-temporal': {
    everyMs: SECOND_MS / 2,
    runsOn: 'worker',
    does: 'Logs when Temporal stops answering and when it answers again, if Temporal runs the workflows.',
    lastSuccess: 'metric strata_workflow_engine_reachable',
  },
  'manifest-requests': {
    // With the delay and the looks at the rows, a manifest is there within a minute of the change.
    everyMs: 3 * SECOND_MS,
    runsOn: 'worker',
    does: 'Requests a new manifest of each repository that changed.',
    lastSuccess: 'policy_marks manifests',
  },
  'leftover-list': {
    everyMs: 24 * HOUR_MS,
    firstMs: RARE_FIRST_MS,
    runsOn: 'worker',
    does: 'Lists what crashes left in the stores of layers, and removes half-written layers of dead processes.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'layer-sweep': {
    // Layers are swept days after they were stored, so a rare sweep is enough; it lists the whole store.
    everyMs: 6 * HOUR_MS,
    firstMs: RARE_FIRST_MS,
    runsOn: 'worker',
    does: "Removes layers that no event names, and expired ones that are still there, from the platform's store.",
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'bucket-sweep': {
    everyMs: 6 * HOUR_MS,
    firstMs: RARE_FIRST_MS,
    runsOn: 'worker',
    does: 'Removes such layers from the buckets of users.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'layer-expiry': {
    // This one and the next three read only the events that were appended since their last run.
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Removes layers that a compaction replaced, after the retention.',
    lastSuccess: 'policy_marks layer-expiry',
  },
  'deleted-expiry': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Records that the layers of deleted repositories go, after the retention.',
    lastSuccess: 'policy_marks deleted-expiry',
  },
  'purge-removal': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Removes layers an hour after a purge, an erasure or the end of a deleted repository let them go.',
    lastSuccess: 'policy_marks purged-layers',
  },
  'unreached-objects': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Requests a compaction of each repository with objects that no ref has reached within the retention.',
    lastSuccess: 'policy_marks unreached-objects',
  },
  'log-pruning': {
    // Looks at each delivery that is listed.
    everyMs: 6 * HOUR_MS,
    firstMs: RARE_FIRST_MS,
    runsOn: 'worker',
    does: 'Removes operational streams from the log after the retention, and the rows that were made from them.',
    lastSuccess: 'policy_marks operational-pruning',
  },

  // Accounts: their logs, usage, erasure and secrets.
  'daily-checkpoints': {
    // Each account's log is signed within an hour of a day after its last checkpoint.
    everyMs: HOUR_MS,
    runsOn: 'worker',
    does: 'Signs the log of each account that has grown since its last checkpoint, once a day.',
    lastSuccess: 'store checkpoints/',
  },
  'checkpoint-check': {
    everyMs: 5 * MINUTE_MS,
    firstMs: SECOND_MS,
    runsOn: 'worker',
    does: "Looks which accounts' logs do not continue their last checkpoint.",
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'daily-usage': {
    // Reads only what was appended since the last time; what was appended today waits for tomorrow.
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Sums the operational events of each account and day in its record.',
    lastSuccess: 'policy_marks usage-summing',
  },
  'account-snapshots': {
    // Until a long log that has grown has a snapshot, its owner's request folds what is behind the one before.
    everyMs: 5 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Saves snapshots of accounts with long logs, so that no request folds such a log from its start.',
    lastSuccess: 'table snapshots',
  },
  'account-erasure': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Erases closed accounts when they can no longer be reopened.',
    lastSuccess: 'policy_marks account-erasure',
  },
  'erasure-leftovers': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Repeats each erasure once no request from before it can still run, since such a request may have written.',
    lastSuccess: 'policy_marks erasure-leftovers',
  },
  'vault-sweep': {
    // Reads only the events appended since the last run. Soon after the start, since it finishes the erasures that the
    // process before this one left unfinished.
    everyMs: 10 * MINUTE_MS,
    firstMs: SECOND_MS,
    runsOn: 'worker',
    does: 'Removes vault records that no event names, and finishes interrupted erasures and changes of addresses.',
    lastSuccess: 'table vault_read_mark',
  },
  verification: {
    // It walks from one run to the next (core/use-cases/verifying/verify-in-background.ts).
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Verifies the log, the vault and the layers, a little at a time; one process walks.',
    lastSuccess: 'table verification_walks',
  },
  'session-expiry': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Removes expired sessions of browsers.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'rate-limit-expiry': {
    everyMs: MINUTE_MS,
    runsOn: 'worker',
    does: 'Removes counts of rate limits whose span is over.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },

  // Webhooks.
  'webhook-secret-expiry': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Removes the previous secret of a webhook from the vault when it no longer signs.',
    lastSuccess: 'policy_marks webhook-secret-expiry',
  },
  'webhook-retention': {
    everyMs: 10 * MINUTE_MS,
    runsOn: 'worker',
    does: 'Removes the bodies of deliveries after the retention, and the counts of hours that are over.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
  'webhook-bodies': {
    // Bodies beyond an account's bound leave within a minute.
    everyMs: 30 * SECOND_MS,
    runsOn: 'worker',
    does: 'Removes the bodies of the oldest ended deliveries of accounts that keep more than their bound.',
    lastSuccess: LAST_SUCCESS_METRIC,
  },
} as const satisfies Readonly<Record<string, PeriodicWork>>;

/** Each row says where its work starts. Its intervals, if it has any, are constants of that file. */
export const OTHER_WORK = {
  'repeat-erasures': {
    when: 'before the first request',
    runsOn: 'every node',
    does: 'Erases accounts again that a restored database still has (compose.ts).',
    lastSuccess: 'nowhere',
  },
  'directory-lock': {
    when: 'from start to stop',
    runsOn: 'every node',
    does: 'Touches the lock of the data directory each second, so that no second server opens it (data-directory.ts).',
    lastSuccess: 'nowhere',
  },
  'running-process': {
    when: 'from start to stop',
    runsOn: 'every node',
    does: 'Says every 30 seconds that the process runs and which stored forms it reads (running-process.ts).',
    lastSuccess: 'table running_processes',
  },
  'read-leases': {
    when: 'from start to stop',
    runsOn: 'every node',
    does: 'Renews the read lease under which the node answers from memory (event-log.ts).',
    lastSuccess: 'metric strata_read_lease_held',
  },
  entities: {
    when: 'from start to stop',
    runsOn: 'every node',
    does: 'Follows the log and applies each event to the entities in memory (foundation.ts).',
    lastSuccess: '/readyz log',
  },
  'slow-readers': {
    when: 'from start to stop',
    runsOn: 'every node',
    does: 'Looks for clients that read too slowly, and disconnects them (slow-readers.ts).',
    lastSuccess: 'nowhere',
  },
  projections: {
    when: 'from start to stop',
    runsOn: 'worker',
    does: 'Applies each event to the read models; one process leads each model (projections.ts).',
    lastSuccess: 'metric strata_projection_position',
  },
  workflows: {
    when: 'from start to stop',
    runsOn: 'worker',
    does: 'Carries out the steps of workflows that are due; one process leads (workflows.ts).',
    lastSuccess: 'metric strata_workflow_steps_total',
  },
  'webhook-deliveries': {
    when: 'from start to stop',
    runsOn: 'worker',
    does: 'Requests a delivery for each push and sends those that are due; one process leads (webhooks.ts).',
    lastSuccess: 'policy_marks webhook-notifications',
  },
  'bucket-error': {
    when: 'behind a request',
    runsOn: 'every node',
    does: 'Records that a bucket of a user failed.',
    lastSuccess: 'nowhere',
  },
  'compaction-request': {
    when: 'behind a request',
    runsOn: 'every node',
    does: 'Requests a compaction of the repository that a push went to.',
    lastSuccess: 'nowhere',
  },
  'sign-in-failed': {
    when: 'behind a request',
    runsOn: 'every node',
    does: 'Records a failed attempt to sign in.',
    lastSuccess: 'nowhere',
  },
  'warm-clone': {
    when: 'behind a request',
    runsOn: 'every node',
    does: 'Makes the answer to the next clone after a push, if a client asked for one before.',
    lastSuccess: 'nowhere',
  },
  'cached-packs': {
    when: 'behind a request',
    runsOn: 'every node',
    does: 'Merges packs of cached repositories, and writes their bitmaps and commit-graphs (adapters/git/cache).',
    lastSuccess: 'nowhere',
  },
} as const satisfies Readonly<Record<string, OtherWork>>;

type PeriodicName = keyof typeof PERIODIC;
type NameOn<Where extends BackgroundWork['runsOn']> = {
  readonly [Name in PeriodicName]: (typeof PERIODIC)[Name]['runsOn'] extends Where ? Name : never;
}[PeriodicName];

/** What the runs of rows of `PERIODIC` are reported to. */
export interface BackgroundReports {
  readonly onFault: (what: string, cause: unknown) => void;
  readonly metrics: Pick<Metrics, 'periodic'>;
}

/** Starts a row of `PERIODIC`. `run` gets a signal that is aborted when the process stops. */
export type StartPeriodic<Where extends BackgroundWork['runsOn']> = (
  name: NameOn<Where>,
  run: (signal: AbortSignal) => Promise<void>,
) => void;

/** Returns what starts the rows of one role. It adds to `parts` what stops them. */
export function startPeriodic<Where extends BackgroundWork['runsOn']>(
  { onFault, metrics }: BackgroundReports,
  parts: Pick<Closer, 'add'>,
): StartPeriodic<Where> {
  return (name, run) => {
    const { everyMs, firstMs }: PeriodicWork = PERIODIC[name];
    const { succeeded } = metrics.periodic(name);
    const reported = async (signal: AbortSignal): Promise<void> => {
      await run(signal);
      // A run that was told to stop may have left out a part of its work.
      if (!signal.aborted) succeeded();
    };
    parts.add(every(everyMs, reported, (cause) => onFault(name, cause), firstMs));
  };
}
