/**
 * How the server's processes ended on this data directory: the metrics of the next one say it.
 *
 * Invariants: it is written when the server is ready and when it ends, in whole files. A process that ends without a
 * word, as by SIGKILL or for want of memory, leaves a record that says it runs, by which the next one knows. A record
 * that cannot be written or read never stops the server. The caller holds the lock of the data directory.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import type { Log } from '../../core/ports/log.ts';

/**
 * - `stopped`: somebody asked for it;
 * - `died`: nobody knows, as it left no word;
 * - `close-failed`: a part did not close;
 * - the others: a failure that nobody caught (stray-failures.ts).
 */
export const END_REASONS = ['stopped', 'died', 'close-failed', 'uncaught-exception', 'unhandled-rejection'] as const;
export type EndReason = (typeof END_REASONS)[number];

export const STRAY_KINDS = ['rejection', 'exception'] as const;
export type StrayKind = (typeof STRAY_KINDS)[number];

export interface RunRecord {
  /** Starts after an end that nobody asked for. */
  readonly restarts: number;
  /** Null for the first start. */
  readonly lastEnd: { readonly reason: EndReason; readonly at: string } | null;
  /** Failures that nobody caught, of all processes before this one. */
  readonly strays: Readonly<Record<StrayKind, number>>;
  /** Writes that this process serves: until then the record is that of the one before. */
  begin(): void;
  /** Counts one of this process. */
  noteStray(kind: StrayKind): void;
  /** Writes why this process ends, without a delay; a later call overwrites an earlier one. */
  end(reason: Exclude<EndReason, 'died'>): void;
}

const FILE_NAME = 'run-record.json';
const COUNT = z.number().int().nonnegative();
const RECORD = z.object({
  version: z.literal(1),
  restarts: COUNT,
  strays: z.object({ rejection: COUNT, exception: COUNT }),
  /** Null while the process runs. */
  ended: z.object({ reason: z.enum(END_REASONS), at: z.string() }).nullable(),
});
type Stored = z.infer<typeof RECORD>;

/** Reads the record of the process before. `now` returns RFC 3339. */
export function openRunRecord(
  dataDir: string,
  { now, log }: { readonly now: () => string; readonly log: Log },
): RunRecord {
  const file = path.join(dataDir, FILE_NAME);
  const before = read(file, log);
  const lastEnd = before === null ? null : (before.ended ?? { reason: 'died' as const, at: now() });
  const restarts = (before?.restarts ?? 0) + (lastEnd === null || lastEnd.reason === 'stopped' ? 0 : 1);
  const earlier = before?.strays ?? { rejection: 0, exception: 0 };
  const strays = { ...earlier };
  const write = (ended: Stored['ended']): void => {
    try {
      replace(file, JSON.stringify({ version: 1, restarts, strays, ended } satisfies Stored));
    } catch (error) {
      log.error({ err: error }, 'The record of how the server ends cannot be written');
    }
  };
  return {
    restarts,
    lastEnd,
    strays: earlier,
    begin: () => write(null),
    noteStray: (kind) => void (strays[kind] += 1),
    end: (reason) => write({ reason, at: now() }),
  };
}

function read(file: string, log: Log): Stored | null {
  try {
    return RECORD.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    log.warn({ err: error }, 'The record of how the server ended cannot be read: its counts begin again');
    return null;
  }
}

function replace(file: string, text: string): void {
  const draft = `${file}.draft`;
  const descriptor = openSync(draft, 'w', 0o600);
  try {
    writeFileSync(descriptor, `${text}\n`);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(draft, file);
}
