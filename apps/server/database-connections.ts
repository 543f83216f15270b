/**
 * The connections of a process to PostgreSQL, and what each is for.
 *
 * Invariants: all parts of a server together never hold more connections than STRATA_DATABASE_CONNECTIONS_MAX says, and
 * each part has one at least. The parts do not share: a slow read never keeps an append waiting. A command shares two
 * among all parts and keeps them open from its start, so that a busy server cannot take them in between.
 */
import {
  fillPool,
  type Patience,
  patienceOf,
  whenConnectionsAreFree,
} from '../../adapters/postgres/free-connections.ts';
import { createPool, figuresOf, type PoolFigures } from '../../adapters/postgres/pool.ts';
import type { Log } from '../../core/ports/log.ts';
import { closer } from './closer.ts';

type Pool = ReturnType<typeof createPool>;

/**
 * The least that STRATA_DATABASE_CONNECTIONS_MAX may say: a worker with one connection for each part. Internal: only
 * the operator's setting reaches it.
 */
export const DATABASE_CONNECTIONS_MIN = 20;
/** Every part has what it can use. */
export const DATABASE_CONNECTIONS_DEFAULT = 38;
/** What a command takes, and again for its read models if it needs them. */
const COMMAND_CONNECTIONS = 2;
/** How long a command waits for connections that others hold. */
export const COMMAND_PATIENCE_MS = 30_000;
/** A worker holds one for each read model that it leads. */
export const MODEL_LEADS = 11;
/** A worker also leads the workflows, on one of `work`, and the webhooks, on one of its own. */
const WORKFLOW_LEADS = 1;
const WEBHOOK_LEADS = 1;
/** For news of the log, and of read leases. */
const LISTENERS = 2;

type Part = 'appends' | 'reads' | 'leases' | 'models' | 'work';

/**
 * How many connections each part can use: appends beside reads of the head, since one batch of each runs at a time;
 * reads of the log; what is told of a read lease beside its renewal; what the runner of the read models does beside
 * what it leads; and all queries of requests and of the work in the background.
 */
const USEFUL: Readonly<Record<Part, number>> = { appends: 2, reads: 6, leases: 2, models: 4, work: 9 };
/** More than is useful helps these only. */
const GROWING: ReadonlySet<Part> = new Set<Part>(['reads', 'work']);
const PARTS = ['appends', 'reads', 'leases', 'models', 'work'] as const satisfies readonly Part[];

export type ConnectionShares = Readonly<Record<Part, number>>;

/** Divides the connections of a server: one for each part and each lead, and the others in proportion to their use. */
export function sharesOf(connectionsMax: number, isWorker: boolean): ConnectionShares {
  const shares = { appends: 1, reads: 1, leases: 1, models: 1, work: 1 };
  const held = LISTENERS + (isWorker ? MODEL_LEADS + WORKFLOW_LEADS + WEBHOOK_LEADS : 0);
  for (let left = connectionsMax - held - PARTS.length; left > 0; left -= 1) {
    const open = PARTS.filter((part) => GROWING.has(part) || shares[part] < USEFUL[part]);
    const poorest = open.toSorted((a, b) => (shares[a] + 1) / USEFUL[a] - (shares[b] + 1) / USEFUL[b])[0] ?? 'work';
    shares[poorest] += 1;
  }
  if (!isWorker) return shares;
  return { ...shares, models: shares.models + MODEL_LEADS, work: shares.work + WORKFLOW_LEADS };
}

export interface DatabaseConnections {
  /** For read models and operational tables. */
  readonly work: Pool;
  readonly appends: Pool;
  readonly reads: Pool;
  readonly leases: Pool;
  /** How many the runner of the read models may have. */
  readonly modelsMax: number;
  /** Whether the process listens for news; else it asks for them. */
  readonly listens: boolean;
  /** For a command: opens two connections of the pool, and waits for them. */
  reserve(pool: Pool): Promise<void>;
  /** The figures of each pool, by the name that metrics have for it. */
  figures(): Readonly<Record<string, PoolFigures>>;
  close(): Promise<void>;
}

interface OpenOptions {
  readonly connectionString: string;
  readonly log: Log;
}

export function openServerConnections(options: OpenOptions, shares: ConnectionShares): DatabaseConnections {
  const parts = closer();
  const open = (part: Part): Pool => {
    const pool = createPool({ ...options, connectionsMax: shares[part] });
    parts.add(() => pool.end());
    return pool;
  };
  const [work, appends, reads, leases] = [open('work'), open('appends'), open('reads'), open('leases')];
  const { models: modelsMax } = shares;
  return {
    work,
    appends,
    reads,
    leases,
    modelsMax,
    listens: true,
    reserve: async () => undefined,
    figures: () => ({
      requests: figuresOf(work),
      appends: figuresOf(appends),
      log_reads: figuresOf(reads),
      read_leases: figuresOf(leases),
    }),
    close: () => parts.close(),
  };
}

/** Waits until the command has its connections. */
export async function openCommandConnections(options: OpenOptions, patience: Patience): Promise<DatabaseConnections> {
  const pool = createPool({ ...options, connectionsMax: COMMAND_CONNECTIONS, keepsOpen: true });
  const fill = (wanted: Pool, patient: Patience): Promise<void> =>
    whenConnectionsAreFree(patient, () => fillPool(wanted, COMMAND_CONNECTIONS));
  try {
    await fill(pool, patience);
  } catch (error) {
    await pool.end();
    throw error;
  }
  const all = { work: pool, appends: pool, reads: pool, leases: pool };
  const reserve = (wanted: Pool): Promise<void> => fill(wanted, patienceOf(COMMAND_PATIENCE_MS, options.log));
  // Two to build a read model beside the live one, and one for each that the command leads while no server does.
  return {
    ...all,
    modelsMax: COMMAND_CONNECTIONS + MODEL_LEADS,
    listens: false,
    reserve,
    figures: () => ({ requests: figuresOf(pool) }),
    close: () => pool.end(),
  };
}
