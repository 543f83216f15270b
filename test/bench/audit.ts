/**
 * `npm run bench -- --only audit`: exports the log of one account from PostgreSQL, verifies the export, and shows the
 * state of another account at moments of its log. `--entries` gives the log another size: 1,000,000 take some minutes.
 *
 * Invariants: the events have about the size of pushes, and a source address each. Every log has the same number of
 * streams, since a verifier's memory grows with them, and must not grow with the entries. Export and verification run
 * one after the other in this process, each on one core; the figures of memory are those of the process, over what it
 * had before.
 */
import { createWriteStream } from 'node:fs';
import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { startEmbeddedPostgres } from '../../adapters/embedded-postgres/start.ts';
import { digest } from '../../adapters/node/digest.ts';
import { processFacts } from '../../adapters/node/process-facts.ts';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { migrate } from '../../adapters/postgres/migrate.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresVault } from '../../adapters/postgres/vault.ts';
import { verifyFile } from '../../apps/verifier/file.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Vault } from '../../core/ports/vault.ts';
import { type ExportContext, openExport } from '../../core/use-cases/auditing/export-account-log.ts';
import { createExportSlots } from '../../core/use-cases/auditing/export-slots.ts';
import { createModels } from '../../projections/models.ts';
import { createReadModels } from '../../projections/read-models.ts';
import { newAccount, newEvent, newStream } from '../support/events.ts';
import { keepLog } from '../support/log.ts';
import { createMemoryCheckpoints } from '../support/memory/log-keys.ts';
import { createMemoryObjects } from '../support/memory/object-database.ts';
import { startRunner } from '../support/read-models.ts';
import { createTestClock } from '../support/test-clock.ts';
import { benchAccountState, renderStateFigures, type StateFigures } from './account-state.ts';
import { describeMachine } from './environment.ts';
import { formatFigure, renderTable } from './table.ts';

const SIZES = [10_000, 100_000];
const STREAMS = 100;
const STATE_ENTRIES_MAX = 100_000;
const APPENDED_AT_ONCE = 50;
const WRITERS = 32;
const DATA = { push_id: '0'.repeat(36), updates: ['x'.repeat(500)] };

interface AuditFigures {
  readonly entries: number;
  readonly what: 'export' | 'verify';
  readonly perSecond: number;
  /** By the processor time of this process; PostgreSQL's is not in it. */
  readonly perCoreSecond: number;
  readonly fileBytes: number;
  /** The most that resident memory grew. */
  readonly grownBytes: number;
}

export interface AuditBenchResult {
  readonly machine: string;
  readonly figures: readonly AuditFigures[];
  readonly states: readonly StateFigures[];
}

/** `entries`: null for two sizes, whose figures show whether memory grows. */
export async function benchAudit({
  entries: size,
  say,
}: {
  readonly entries: number | null;
  readonly say: (text: string) => void;
}): Promise<AuditBenchResult> {
  const folder = await mkdtemp(path.join(tmpdir(), 'strata-bench-audit-'));
  // When root runs the bench, the embedded PostgreSQL runs as another user, who must be able to traverse this folder.
  await chmod(folder, 0o711);
  const steps: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true, maxRetries: 5 })];
  try {
    const dataDir = path.join(folder, 'data');
    const embedded = await startEmbeddedPostgres({ processFacts, dataDir, log: keepLog() });
    steps.push(() => embedded.stop());
    const { ownerConnectionString: connectionString } = embedded;
    await migrate({ connectionString, log: keepLog() });
    const store = createPostgresEventStore({ connectionString, log: keepLog() });
    steps.push(() => store.close());
    const pool = createPool({ connectionString, log: keepLog(), connectionsMax: 20 });
    steps.push(() => pool.end());
    const figures: AuditFigures[] = [];
    const onTestFinished = (step: () => unknown): void => void steps.push(step);
    const context = await contextOf({ onTestFinished }, store, pool);
    // First, because the worker's snapshots are of all accounts, and the entries of the others mean nothing.
    const stateEntries = Math.min(size ?? STATE_ENTRIES_MAX, STATE_ENTRIES_MAX);
    say(`Filling a log of ${stateEntries} entries, and showing the state of its account`);
    const caughtUp = () => caughtUpWith(context, store);
    const { readModels } = context;
    const states = await benchAccountState({ events: store, readModels, database: pool, caughtUp }, stateEntries);
    for (const wanted of size === null ? SIZES : [size]) {
      say(`Filling a log of ${wanted} entries`);
      const [account, entries] = await fill(context, store, wanted);
      say('Exporting and verifying it');
      figures.push(...(await measure(context, account, entries, path.join(folder, `${entries}.ndjson`))));
    }
    return { machine: describeMachine(), figures, states };
  } finally {
    for (const step of steps.toReversed()) await step();
  }
}

type BenchContext = ExportContext & { readonly events: EventStore; readonly vault: Vault };

async function contextOf(
  ending: Parameters<typeof startRunner>[0],
  events: EventStore,
  pool: ReturnType<typeof createPool>,
): Promise<BenchContext> {
  const clock = createTestClock();
  const complete = async <Event>(event: Event): Promise<Event> => event;
  const objects = createMemoryObjects().database;
  const models = createModels({ digest, workflows: [], events, complete, objects });
  const { runner } = await startRunner(ending, { events, database: pool, models: [models.accountLog] });
  const readModels = createReadModels({ digest, database: pool, models, runner, clock });
  return {
    ...{ events, readModels, exportSlots: createExportSlots() },
    vault: createPostgresVault({ pool, masterKey: new Uint8Array(32) }),
    checkpoints: createMemoryCheckpoints({ readModels, digest, clock }),
  };
}

/** Returns the account, and how many entries it has. */
async function fill(context: BenchContext, store: EventStore, entries: number): Promise<readonly [AccountId, number]> {
  const account = newAccount();
  const sourceAddressRef = await context.vault.put(account, 'source-address', '192.0.2.1');
  const streams = Array.from({ length: STREAMS }, () => newStream());
  const appends = Math.ceil(entries / STREAMS / APPENDED_AT_ONCE);
  const event = () => newEvent({ accountId: account, type: 'RefsUpdated', sourceAddressRef, data: DATA });
  const writers = Array.from({ length: WRITERS }, async () => {
    for (let stream = streams.pop(); stream !== undefined; stream = streams.pop()) {
      for (let at = 0; at < appends * APPENDED_AT_ONCE; at += APPENDED_AT_ONCE) {
        const events = Array.from({ length: APPENDED_AT_ONCE }, event);
        await store.append({ stream, expected: at === 0 ? 'none' : at - 1, events });
      }
    }
  });
  await Promise.all(writers);
  await caughtUpWith(context, store);
  return [account, STREAMS * appends * APPENDED_AT_ONCE];
}

/**
 * Resolves when the model has the whole log. A reader's own wait is shorter than the model takes for this many events.
 */
async function caughtUpWith({ readModels }: BenchContext, store: EventStore): Promise<void> {
  const head = await store.head();
  for (let isThere = false; !isThere; ) {
    isThere = await readModels.accountLogCaughtUp(head).then(
      () => true,
      () => false,
    );
  }
}

async function measure(
  context: BenchContext,
  account: AccountId,
  entries: number,
  file: string,
): Promise<readonly AuditFigures[]> {
  const seen = await context.events.head();
  const exported = await timed(async () => {
    const opened = await openExport(context, { account, seen, since: null, until: null });
    if ('refused' in opened) throw new Error('The export was refused');
    await pipeline(Readable.from(opened.chunks(), { objectMode: false }), createWriteStream(file));
    opened.close();
  });
  const verified = await timed(async () => {
    const { to, openings } = await verifyFile(file, { keys: null, older: [] });
    if (to !== entries || openings !== entries) throw new Error(`Verified ${to} entries and ${openings} openings`);
  });
  const { size: fileBytes } = await stat(file);
  const figuresOf = (what: AuditFigures['what'], { seconds, coreSeconds, grownBytes }: Timed): AuditFigures => {
    return {
      ...{ entries, what, fileBytes, grownBytes },
      perSecond: entries / seconds,
      perCoreSecond: entries / coreSeconds,
    };
  };
  return [figuresOf('export', exported), figuresOf('verify', verified)];
}

interface Timed {
  readonly seconds: number;
  readonly coreSeconds: number;
  readonly grownBytes: number;
}

async function timed(work: () => Promise<void>): Promise<Timed> {
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => void (most = Math.max(most, process.memoryUsage.rss())), 20);
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - start) / 1_000;
  return { seconds, coreSeconds: (user + system) / 1_000_000, grownBytes: most - before };
}

const MIB = 1024 * 1024;

export function renderAuditBench({ machine, figures, states }: AuditBenchResult): string {
  const rows = figures.map(({ entries, what, perSecond, perCoreSecond, fileBytes, grownBytes }) => [
    ...[what, String(entries), formatFigure(perSecond), formatFigure(perCoreSecond)],
    ...[formatFigure(fileBytes / MIB), formatFigure(grownBytes / MIB)],
  ]);
  const head = ['what', 'entries', 'per second', 'per second of a core', 'file MiB', 'memory grown MiB'];
  return `${machine}\n\n${renderTable(head, rows)}\n\n${renderStateFigures(states)}\n`;
}
