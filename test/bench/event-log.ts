/**
 * Measures the event log on an embedded PostgreSQL with fsync, in a temporary directory.
 *
 * `node test/bench/event-log.ts` prints appends per second, latencies and the events a subscriber reads per second.
 * `node test/bench/event-log.ts fill [data directory] [events] [streams]` makes a large log (by default 1,000,000
 * events of 100,000 streams) to measure memory and start with; the log is kept when a directory is named.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { createPostgresEventStore, type PostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { migrate } from '../../adapters/postgres/migrate.ts';
import { LOG_START, type StreamName } from '../../core/kernel/envelope.ts';
import { newEvent, newStream } from '../support/events.ts';
import { keepLog } from '../support/log.ts';

const WRITERS = [1, 16, 64, 256];
const SPAN_MS = 5_000;

/** Appends `events` events, 10 in an append, to `streams` streams in rotation. */
export async function fillLog(store: PostgresEventStore, events: number, streams: number): Promise<void> {
  const names = Array.from({ length: streams }, (): StreamName => newStream());
  const eventsEach = 10;
  let started = 0;
  const writers = Array.from({ length: 64 }, async () => {
    for (let append = started++; append * eventsEach < events; append = started++) {
      const stream = names[append % streams] ?? newStream();
      const revision = Math.floor(append / streams) * eventsEach - 1;
      await store.append({
        stream,
        expected: revision < 0 ? 'none' : revision,
        events: Array.from({ length: eventsEach }, () => newEvent()),
      });
    }
  });
  await Promise.all(writers);
}

async function measureAppends(store: PostgresEventStore, writers: number): Promise<void> {
  const latenciesMs: number[] = [];
  const start = performance.now();
  const write = async () => {
    const stream = newStream();
    for (let n = 0; performance.now() - start < SPAN_MS; n++) {
      const begun = performance.now();
      await store.append({ stream, expected: n === 0 ? 'none' : n - 1, events: [newEvent()] });
      latenciesMs.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: writers }, write));
  const perSecond = (latenciesMs.length / (performance.now() - start)) * 1_000;
  latenciesMs.sort((a, b) => a - b);
  const at = (share: number) => latenciesMs[Math.floor(latenciesMs.length * share)]?.toFixed(2);
  report(`${writers} writers`, `${Math.round(perSecond)} appends/s`, `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}

async function measureSubscriber(store: PostgresEventStore): Promise<void> {
  const head = await store.head();
  const start = performance.now();
  let count = 0;
  await new Promise<void>((resolve) => {
    const subscription = store.subscribe({
      after: LOG_START,
      onEvents: (events, position) => {
        count += events.length;
        if (position >= head) {
          void subscription.close();
          resolve();
        }
      },
    });
  });
  report('subscriber', `${Math.round((count / (performance.now() - start)) * 1_000)} events/s`, `${count} events`);
}

async function measureNotice(store: PostgresEventStore): Promise<void> {
  const delaysMs: number[] = [];
  let arrived = () => {};
  const subscription = store.subscribe({ after: await store.head(), onEvents: () => arrived() });
  for (let n = 0; n < 200; n++) {
    const seen = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    await store.append({ stream: newStream(), expected: 'none', events: [newEvent()] });
    const begun = performance.now();
    await seen;
    delaysMs.push(performance.now() - begun);
  }
  await subscription.close();
  delaysMs.sort((a, b) => a - b);
  report('append to subscriber', `p50 ${delaysMs[100]?.toFixed(2)} ms`, `p99 ${delaysMs[198]?.toFixed(2)} ms`);
}

async function measureHead(store: PostgresEventStore): Promise<void> {
  const start = performance.now();
  let count = 0;
  const read = async () => {
    while (performance.now() - start < SPAN_MS / 2) {
      await store.head();
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: 100 }, read));
  report('100 readers of the head', `${Math.round((count / (performance.now() - start)) * 1_000)} answers/s`);
}

function report(...cells: readonly string[]): void {
  console.log(cells.map((cell) => cell.padEnd(26)).join(''));
}

const [mode, directory, events = '1000000', streams = '100000'] = process.argv.slice(2);
const dataDir = directory ?? (await mkdtemp(path.join(os.tmpdir(), 'strata-bench-')));
if (directory === undefined) await chmod(dataDir, 0o711);
const log = keepLog();
const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log });
const { ownerConnectionString: connectionString } = embedded;
await migrate({ connectionString, log });
const store = createPostgresEventStore({ connectionString, log });
try {
  if (mode === 'fill') {
    const start = performance.now();
    await fillLog(store, Number(events), Number(streams));
    report('filled', `${events} events`, `${((performance.now() - start) / 1_000).toFixed(1)} s`);
  } else {
    for (const writers of WRITERS) await measureAppends(store, writers);
    await measureNotice(store);
    await measureHead(store);
  }
  await measureSubscriber(store);
} finally {
  await store.close();
  await embedded.stop();
  if (directory === undefined) await rm(dataDir, { recursive: true });
}
