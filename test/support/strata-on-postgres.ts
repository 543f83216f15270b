/**
 * Servers on a database of the shared PostgreSQL, which start fast, alone or several at the same time, with their event
 * log open to the test. The log is in that database or on EventStoreDB's protocol server; the workflows run in the
 * servers or on Temporal.
 */
import path from 'node:path';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import { LOG_START, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { cleanUp, type Ending } from './cleanup.ts';
import { eventStoreDbSettings } from './eventstoredb/process.ts';
import { keepLog } from './log.ts';
import { testDatabase } from './postgres.ts';
import { type LogKind, logKind, type Strata, startStrata, workflowSettings } from './strata.ts';
import { tempDir } from './temp-dir.ts';

export interface TestLog {
  head(): Promise<LogPosition>;
  /** Returns every event after a position, or all events. */
  since(position?: LogPosition): Promise<readonly RecordedEvent[]>;
}

/** What the servers of one service share: database, master key, layers. */
export interface SharedParts {
  readonly env: Readonly<Record<string, string>>;
  readonly layersDir: string;
  readonly log: TestLog;
}

export async function sharedParts(ending: Ending, kind: LogKind = logKind()): Promise<SharedParts> {
  const database = await testDatabase();
  cleanUp(ending, () => database.close());
  const layersDir = path.join(await tempDir(ending), 'layers');
  const settings = kind === 'postgres' ? null : await eventStoreDbSettings(ending);
  const log =
    settings === null
      ? openPostgresLog(ending, database.connectionString)
      : eventStoreDbLog(settings.STRATA_EVENTSTORE_URL);
  return {
    env: {
      ...settings,
      ...(await workflowSettings(ending)),
      STRATA_DATABASE_URL: database.servingConnectionString,
      STRATA_DATABASE_OWNER_URL: database.connectionString,
      STRATA_MASTER_KEY: 'ab'.repeat(32),
      STRATA_LAYERS_DIR: layersDir,
    },
    layersDir,
    log,
  };
}

const EVENTS_MAX = 1_000_000;

function openPostgresLog(ending: Ending, connectionString: string): TestLog {
  const events = createPostgresEventStore({ connectionString, log: keepLog() });
  cleanUp(ending, () => events.close());
  return { head: () => events.head(), since: (position = LOG_START) => events.readAll(position, EVENTS_MAX) };
}

/** A process may have one client of EventStoreDB, and the tests of a suite may run at the same time. */
const oneClientAtATime = createConcurrencyLimit(1);

/** Opens the log for each read. Loads the client only here: most tests that import this file do not need it. */
function eventStoreDbLog(address: string): TestLog {
  const reading = <Result>(read: (events: EventStore) => Promise<Result>): Promise<Result> =>
    oneClientAtATime(async () => {
      const { createEventStoreDbEventStore } = await import('../../adapters/eventstoredb/event-store.ts');
      const events = createEventStoreDbEventStore({ address, folder: '/', log: keepLog() });
      try {
        return await read(events);
      } finally {
        await events.close();
      }
    });
  return {
    head: () => reading((events) => events.head()),
    since: (position = LOG_START) => reading((events) => events.readAll(position, EVENTS_MAX)),
  };
}

/** Starts a server of the service, with a cache of its own. */
export function startNode(
  ending: Ending,
  shared: SharedParts,
  env: Readonly<Record<string, string>> = {},
): Promise<Strata> {
  // The shared parts name their EventStoreDB, or have their log in PostgreSQL.
  return startStrata(ending, { log: 'postgres', env: { ...shared.env, ...env } });
}
