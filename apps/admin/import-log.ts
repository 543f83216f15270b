/**
 * `strata-admin log import`: reads a whole log from a file or from standard input into an empty one.
 *
 * Invariants: no other process works on the target, and none opens it before the import is complete. The
 * import leaves no data that was derived from another log or holds its positions.
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
  { context, pool, claim, runningProcess }: Foundation & { readonly claim: LogClaim },
  log: Logger,
  file: string | null,
): Promise<ImportReport> {
  const { events, digest, failpoint } = context;
  let reported = 0;
  const target = {
    events,
    digest,
    begin: async () => {
      // The mark is set first: a crash at any later step then leaves an import that is known to be unfinished.
      await claim.begin();
      await dropReadModels(pool);
      // The file may hold the newest versions: no older program may start on this log any more.
      await runningProcess.finishUpgrade({ whoeverRuns: true });
      await failpoint('log-import-begun');
    },
    onProgress: async (appended: number) => {
      await failpoint('log-import-appended');
      if (appended - reported < PROGRESS_EVENTS) return;
      reported = appended;
      log.info({ events: appended }, 'Importing the log');
    },
  };
  const chunks: AsyncIterable<Uint8Array> = file === null ? process.stdin : createReadStream(file);
  const report = await importLog(target, fileLines(chunks, LOG_FILE_LINE_BYTES_MAX));
  await failpoint('log-import-verified');
  await claim.finish(pool);
  return report;
}
