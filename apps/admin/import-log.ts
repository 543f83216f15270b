/**
 * `strata-admin log import`: a whole log from a file, or from standard input, into an empty one.
 *
 * Must stay true: nobody else works on the target meanwhile, and nobody opens it before it is whole; nothing that was
 * derived from another log, or that holds positions of one, is left beside it.
 */
import { createReadStream } from 'node:fs';
import type { Logger } from 'pino';
import { fileLines } from '../../adapters/node/file-lines.ts';
import type { LogClaim } from '../../adapters/postgres/log-import.ts';
import { LOG_FILE_LINE_BYTES_MAX } from '../../core/kernel/limits.ts';
import { type ImportReport, importLog } from '../../core/use-cases/log-files/import-log.ts';
import { dropReadModels } from '../../projections/runner/tables.ts';
import type { Foundation } from '../server/foundation.ts';

const PROGRESS_EVENTS = 100_000;

/** Imports a file; null for standard input. */
export async function importLogFile(
  { context, pool, claim }: Foundation & { readonly claim: LogClaim },
  log: Logger,
  file: string | null,
): Promise<ImportReport> {
  const { events, digest, reach } = context;
  let told = 0;
  const target = {
    events,
    digest,
    begin: async () => {
      // The mark first: whatever comes after it may be cut short.
      await claim.begin();
      await dropReadModels(pool);
      await reach('log-import-begun');
    },
    onProgress: async (appended: number) => {
      await reach('log-import-appended');
      if (appended - told < PROGRESS_EVENTS) return;
      told = appended;
      log.info({ events: appended }, 'Importing the log');
    },
  };
  const chunks: AsyncIterable<Uint8Array> = file === null ? process.stdin : createReadStream(file);
  const report = await importLog(target, fileLines(chunks, LOG_FILE_LINE_BYTES_MAX));
  await reach('log-import-verified');
  await claim.finish(pool);
  return report;
}
