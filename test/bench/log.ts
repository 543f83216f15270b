/**
 * `npm run bench -- log`: measures each available event log alone, one after the other, and plain commits of
 * PostgreSQL.
 *
 * Invariants: PostgreSQL runs with fsync; EventStoreDB is measured where STRATA_EVENTSTORE_URL names one; the
 * protocol server is a stand-in in memory, and each of its lines says so: its figures show the cost of the adapter, not
 * of a server.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { createEventStoreDbEventStore } from '../../adapters/eventstoredb/event-store.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { migrate } from '../../adapters/postgres/migrate.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { newEvent, newStream } from '../support/events.ts';
import { startProtocolServerProcess } from '../support/eventstoredb/process.ts';
import { keepLog } from '../support/log.ts';
import { describeMachine } from './environment.ts';
import { percentile } from './statistics.ts';
import { formatFigure, renderTable } from './table.ts';

const APPENDERS = [1, 8, 64];
const LAG_SAMPLES = 200;
/** About the size of what a push appends to the log. */
const DATA_BYTES = 600;

export interface LogBenchOptions {
  /** How long each number of appenders appends. */
  readonly seconds: number;
  readonly say: (text: string) => void;
}

export interface LogFigures {
  readonly log: string;
  /** The number of appenders, or of connections, that work at the same time. */
  readonly appenders: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Null where there is no subscriber, and on all lines of a log except its first. */
  readonly lag: { readonly p50Ms: number; readonly p99Ms: number } | null;
}

export interface LogBenchResult {
  readonly date: string;
  readonly machine: string;
  readonly versions: string;
  readonly figures: readonly LogFigures[];
}

interface OpenLog {
  readonly name: string;
  readonly store: EventStore;
  readonly close: () => Promise<unknown>;
}

/** Measures every available log, one after the other. */
export async function benchLogs({ seconds, say }: LogBenchOptions): Promise<LogBenchResult> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'strata-bench-log-'));
  // When root runs the bench, the embedded PostgreSQL runs as another user, who must be able to traverse this folder.
  await chmod(dataDir, 0o711);
  const embedded = await startEmbeddedPostgres({
    processFacts,
    dataDir,
    log: keepLog(),
    settings: { max_connections: '100' },
  });
  let cleaned: Promise<void> | null = null;
  const cleanUp = (): Promise<void> => {
    cleaned ??= embedded.stop().then(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    return cleaned;
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
  }
  try {
    const { ownerConnectionString: connectionString } = embedded;
    await migrate({ connectionString, log: keepLog() });
    const figures: LogFigures[] = [];
    say('Measuring single-row commits');
    figures.push(...(await measureCommits(connectionString, seconds)));
    for (const open of [() => openPostgres(connectionString), openEventStoreDb, openProtocolServer]) {
      const log = await open();
      if (log === null) continue;
      say(`Measuring ${log.name}`);
      try {
        figures.push(...(await measureLog(log, seconds)));
      } finally {
        await log.close();
      }
    }
    const versions = `Node ${process.versions.node}`;
    return { date: new Date().toISOString().slice(0, 10), machine: describeMachine(), versions, figures };
  } finally {
    await cleanUp();
  }
}

const HEAD = ['log', 'appenders', 'per second', 'p50 ms', 'p99 ms', 'lag p50 ms', 'lag p99 ms'];

const LEGEND = [
  'An append is one event of a stream of its own, acknowledged; PostgreSQL with fsync. Single-row commits: INSERT of a',
  'row of the same size by as many connections, each its own transaction. Lag: from the acknowledgement of an append to',
  'the subscriber of the same process. The stand-in keeps its log in memory: its figures are those of the adapter.',
].join('\n');

export function renderLogBench({ date, machine, versions, figures }: LogBenchResult): string {
  const rows = figures.map(({ log, appenders, perSecond, p50Ms, p99Ms, lag }) => [
    ...[log, String(appenders)],
    ...[perSecond, p50Ms, p99Ms].map(formatFigure),
    ...(lag === null ? ['', ''] : [lag.p50Ms, lag.p99Ms].map(formatFigure)),
  ]);
  return `${date}, ${machine}; ${versions}\n\n${renderTable(HEAD, rows)}\n\n${LEGEND}\n`;
}

async function openPostgres(connectionString: string): Promise<OpenLog> {
  const store = createPostgresEventStore({ connectionString, log: keepLog() });
  return { name: 'PostgreSQL', store, close: () => store.close() };
}

async function openEventStoreDb(): Promise<OpenLog | null> {
  const address = process.env['STRATA_EVENTSTORE_URL'] ?? '';
  if (address === '') return null;
  const store = createEventStoreDbEventStore({ address, folder: process.cwd(), log: keepLog() });
  return { name: 'EventStoreDB', store, close: () => store.close() };
}

async function openProtocolServer(): Promise<OpenLog> {
  const server = await startProtocolServerProcess();
  const store = createEventStoreDbEventStore({ address: server.address, folder: process.cwd(), log: keepLog() });
  const close = async (): Promise<void> => {
    await store.close();
    await server.stop();
  };
  return { name: 'protocol server (stand-in, memory)', store, close };
}

async function measureLog({ name, store }: OpenLog, seconds: number): Promise<readonly LogFigures[]> {
  const figures: LogFigures[] = [];
  const lagsMs = await measureLag(store);
  for (const appenders of APPENDERS) {
    const rate = await measureRate(appenders, seconds, () => {
      const stream = newStream();
      let revision = -1;
      return async () => {
        const expected = revision < 0 ? 'none' : revision;
        const result = await store.append({ stream, expected, events: [benchEvent()] });
        if (result.outcome !== 'appended') throw new Error(`A stream of the bench has the revision ${result.actual}`);
        revision = result.revision;
      };
    });
    const lag = figures.length > 0 ? null : { p50Ms: percentile(lagsMs, 0.5), p99Ms: percentile(lagsMs, 0.99) };
    figures.push({ log: name, appenders, ...rate, lag });
  }
  return figures;
}

function benchEvent() {
  return newEvent({ data: { note: 'x'.repeat(DATA_BYTES) } });
}

/** Measures from each acknowledgement until a subscriber gets the event. */
async function measureLag(store: EventStore): Promise<readonly number[]> {
  const lagsMs: number[] = [];
  let arrived = (): void => undefined;
  let wanted = '';
  const subscription = store.subscribe({
    after: await store.head(),
    onEvents: (events) => {
      if (events.some(({ id }) => id === wanted)) arrived();
    },
  });
  for (let n = 0; n < LAG_SAMPLES; n += 1) {
    const event = benchEvent();
    wanted = event.id;
    const seen = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    await store.append({ stream: newStream(), expected: 'none', events: [event] });
    const startedMs = performance.now();
    await seen;
    lagsMs.push(performance.now() - startedMs);
  }
  await subscription.close();
  return lagsMs;
}

async function measureCommits(connectionString: string, seconds: number): Promise<readonly LogFigures[]> {
  const clients = Array.from({ length: Math.max(...APPENDERS) }, () => new pg.Client({ connectionString }));
  try {
    await Promise.all(clients.map((client) => client.connect()));
    const create = 'CREATE TABLE bench_rows (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, data text)';
    await clients[0]?.query(create);
    const data = 'x'.repeat(DATA_BYTES);
    const insert = { name: 'bench-insert', text: 'INSERT INTO bench_rows (data) VALUES ($1)', values: [data] };
    const figures: LogFigures[] = [];
    for (const connections of APPENDERS) {
      const rate = await measureRate(connections, seconds, (index) => {
        return async () => void (await clients[index]?.query(insert));
      });
      figures.push({ log: 'single-row commits', appenders: connections, ...rate, lag: null });
    }
    return figures;
  } finally {
    await Promise.allSettled(clients.map((client) => client.end()));
  }
}

/** Runs workers that repeat their operation until the time is over. */
async function measureRate(
  workers: number,
  seconds: number,
  create: (index: number) => () => Promise<void>,
): Promise<Pick<LogFigures, 'perSecond' | 'p50Ms' | 'p99Ms'>> {
  const latenciesMs: number[] = [];
  const startedMs = performance.now();
  const work = async (_: unknown, index: number): Promise<void> => {
    const operate = create(index);
    while (performance.now() - startedMs < seconds * 1_000) {
      const begunMs = performance.now();
      await operate();
      latenciesMs.push(performance.now() - begunMs);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  const perSecond = latenciesMs.length / ((performance.now() - startedMs) / 1_000);
  return { perSecond, p50Ms: percentile(latenciesMs, 0.5), p99Ms: percentile(latenciesMs, 0.99) };
}
