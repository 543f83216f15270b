/**
 * `strata-admin log export --account`: the log of one account, erased or not, as its owner exports it but without
 * openings: an operator proves what was recorded, and reads no personal data.
 *
 * Invariants: the file gets its name only when it is complete and synced.
 */
import { createWriteStream } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import path from 'node:path';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Logger } from 'pino';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import { type ExportContext, openExport } from '../../core/use-cases/auditing/export-account-log.ts';
import { createExportSlots } from '../../core/use-cases/auditing/export-slots.ts';
import { composeCheckpoints } from '../server/auditing.ts';
import type { Foundation } from '../server/foundation.ts';
import type { Settings } from '../server/settings.ts';
import { catchUpAccountLogs } from './account-logs.ts';
import type { WithProjections } from './command-projections.ts';
import { exists, syncFolder } from './export-log.ts';

export interface AccountExportContext {
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly settings: Settings;
  readonly log: Logger;
  readonly withProjections: WithProjections;
}

const NO_OPENINGS: ExportContext['vault'] = { discloseAll: async () => new Map() };

/** Writes to a new file. Throws if it exists. */
export async function exportAccountLogToFile(
  context: AccountExportContext,
  account: AccountId,
  file: string,
): Promise<void> {
  if (await exists(file)) throw new Error(`${file} exists: an export never replaces one`);
  const partial = `${file}.partial`;
  await exportAccountLog(context, account, () => createWriteStream(partial, { flags: 'w', mode: 0o600 }));
  const handle = await open(partial, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(partial, file);
  await syncFolder(path.dirname(file));
}

/** Opens the output only when the log was found; it is ended by the caller if it is a stream of the process. */
export async function exportAccountLog(
  { foundation, layers, settings, withProjections }: AccountExportContext,
  account: AccountId,
  output: () => Writable,
): Promise<void> {
  const { context } = foundation;
  await withProjections(async ({ runner, readModels }) => {
    const seen = await catchUpAccountLogs(runner, context.events);
    if ((await readModels.logPrefix(account, null)).size === 0) throw new Error(`There is no log of ${account}`);
    const opened = await openExport(
      {
        events: context.events,
        readModels,
        vault: NO_OPENINGS,
        exportSlots: createExportSlots(),
        checkpoints: composeCheckpoints(settings, foundation, layers, readModels),
      },
      { account, seen, since: null, until: null },
    );
    if ('refused' in opened) throw new TypeError(`The only export was refused: ${opened.refused.code}`);
    try {
      const target = output();
      await pipeline(opened.chunks, target, { end: target !== process.stdout });
    } finally {
      opened.close();
    }
  });
}
