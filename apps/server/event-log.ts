/**
 * Opens the event log that the settings name, with the read leases that all of its processes share.
 *
 * Invariants: nobody in this process has the log but through `createSettledLog`.
 */
import type { Logger } from 'pino';
import { uuids } from '../../adapters/node/ids.ts';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { createPostgresLogPruning } from '../../adapters/postgres/log-pruning.ts';
import { createPostgresLeaseTable } from '../../adapters/postgres/read-leases.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { LogPruning } from '../../core/ports/log-pruning.ts';
import { createReadLeases, type LeaseClock, type ReadLeases } from '../../core/runtime/read-leases.ts';
import { createSettledLog } from '../../core/runtime/settled-log.ts';
import type { Closer } from './closer.ts';
import type { DatabaseConnections } from './database-connections.ts';
import { createLeaseFaults } from './lease-faults.ts';
import { PartUnreachable } from './part-unreachable.ts';
import type { PartHealth } from './readiness.ts';
import type { Settings } from './settings.ts';
import { SettingsError } from './settings-reader.ts';

/** This node's clock, as the log sees it. */
export interface NodeClock extends Pick<PartHealth, 'isDegraded'> {
  /** By how many seconds the log's clock is ahead of this node's; negative if it is behind, NaN if nobody knows. */
  secondsAhead(): number;
}

/** What comes with the log beside its events. */
export interface LogHealth {
  readonly pruning: LogPruning;
  /** The health of this node's clock, beside that of the log; null for a log that does not tell its own time. */
  readonly clock: NodeClock | null;
}

type EventLog = EventStore & { close(): Promise<void> };

const leaseClock: LeaseClock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

interface SettledLogParts extends Omit<LogParts, 'node' | 'leases'> {
  /** Whether this process may hold a read lease. */
  readonly holds: boolean;
  readonly parts: Pick<Closer, 'add'>;
}

/** Opens the log for everybody in this process. */
export async function openSettledLog(
  settings: Settings,
  { connectionString, connections, log, holds, parts }: SettledLogParts,
): Promise<{ readonly events: EventStore; readonly leases: ReadLeases } & LogHealth> {
  const node: string = uuids.next();
  const { leases: pool, listens } = connections;
  const table = createPostgresLeaseTable({ connectionString, pool, node, log, listens });
  const leases = createReadLeases({
    node,
    table,
    head: () => opened.events.head(),
    holds,
    spanMs: settings.readLeaseMs,
    clock: leaseClock,
    onFault: createLeaseFaults(
      settings.eventStoreDb === null ? 'PostgreSQL' : 'EventStoreDB',
      log,
      leaseClock.monotonicMs,
    ),
  });
  const opened = await openEventLog(settings, { connectionString, connections, log, node, leases });
  parts.add(() => opened.events.close());
  parts.add(() => leases.close());
  await checkEventLog(settings, opened.events);
  return { events: createSettledLog(opened.events, leases), leases, pruning: opened.pruning, clock: opened.clock };
}

interface LogParts {
  readonly connectionString: string;
  readonly connections: DatabaseConnections;
  readonly log: Logger;
  /** This process's name in the table of read leases. */
  readonly node: string;
  readonly leases: ReadLeases;
}

/** Loads the client of EventStoreDB only if it is used: loading takes a fifth of the start of every command. */
async function openEventLog(
  { eventStoreDb }: Settings,
  { connectionString, connections, log, node, leases }: LogParts,
): Promise<{ readonly events: EventLog } & LogHealth> {
  if (eventStoreDb === null) {
    const events = createPostgresEventStore({
      connectionString,
      pools: connections,
      listens: connections.listens,
      log,
      leases: { node, onAppended: (position, held) => leases.hearOwn(position, held) },
    });
    return {
      events,
      pruning: createPostgresLogPruning(connections.work),
      clock: { isDegraded: () => events.clockDiffers(), secondsAhead: () => events.clockSecondsAhead() },
    };
  }
  const { createEventStoreDbEventStore } = await import('../../adapters/eventstoredb/event-store.ts');
  const events = createEventStoreDbEventStore({ ...eventStoreDb, log });
  return { events, pruning: events.pruning, clock: null };
}

/** Throws if EventStoreDB cannot be reached, or refuses to answer. PostgreSQL needs no check: it was just migrated. */
async function checkEventLog({ eventStoreDb }: Settings, events: EventLog): Promise<void> {
  if (eventStoreDb === null) return;
  try {
    await events.head();
  } catch (cause) {
    // The adapter says whether the server cannot be reached, or which right or password it refuses; the client's own
    // error follows.
    const reason = cause instanceof Error ? cause.message : 'it failed';
    const message = `STRATA_EVENTSTORE_URL cannot be used: ${reason} (${innermostMessage(cause)})`;
    const { failureOf } = await import('../../adapters/eventstoredb/failures.ts');
    const isAway = cause instanceof Error && failureOf(cause.cause) === 'outage';
    throw isAway ? new PartUnreachable('eventstoredb', message, { cause }) : new SettingsError(message, { cause });
  }
}

function innermostMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : innermostMessage(error.cause);
}
