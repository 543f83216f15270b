/**
 * The context of `strata-admin`: the server's foundation, opened for one command.
 *
 * Invariants: a command joins a running server and never stops it. Without a server it starts the embedded database
 * under the same lock and stops it afterwards. Log lines are written to standard error.
 */
import { destination, type Logger } from 'pino';
import { createPostgresVerificationWalks } from '../../adapters/postgres/verification-walks.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { VerificationWalks } from '../../core/ports/verification-walks.ts';
import type { ImportReport } from '../../core/use-cases/log-files/import-log.ts';
import type { KnownRepository } from '../../core/use-cases/repositories/known-repositories.ts';
import { openLayerStores } from '../server/buckets.ts';
import { composeFoundation, type Foundation, type FoundationContext } from '../server/foundation.ts';
import { createLogger } from '../server/logger.ts';
import { dropProxyVariables } from '../server/proxy-variables.ts';
import { readSettings, type Settings } from '../server/settings.ts';
import { openAccountLogs } from './account-logs.ts';
import { projectionsOf, type WithProjections } from './command-projections.ts';
import { type ExpiryReport, expireStorage } from './expire-storage.ts';
import { exportAccountLog, exportAccountLogToFile } from './export-account-log.ts';
import { importLogFile } from './import-log.ts';
import { type ListedStorage, listStorage, type StorageContext, type StorageReport, verifyStorage } from './storage.ts';
import { type LogReport, verifyLog } from './verify-log.ts';

/** More than one command needs. Internal: what is not kept is read again. */
const ENTITIES_SIZE_BYTES_MAX = 64 * 1024 * 1024;

export interface AdminContext extends FoundationContext {
  readonly settings: Settings;
  readonly withProjections: WithProjections;
  readonly runningProcess: Foundation['runningProcess'];
  /** Who typed the command, and where: `NAME@HOST`. */
  readonly operator: string;
  /** How far the verification in the background has walked. */
  readonly walks: VerificationWalks;
  verifyLog(options: { readonly references: boolean }): Promise<LogReport>;
  /** Exports the log of one account to a new file; null for standard output. */
  exportAccountLog(account: AccountId, file: string | null): Promise<void>;
  listStorage(): Promise<readonly ListedStorage[]>;
  /** Removes what has passed retention. */
  expireStorage(): Promise<ExpiryReport>;
  /** Verifies the layers of one repository; null for all. */
  verifyStorage(only: KnownRepository | null): Promise<StorageReport>;
  /** Opens the stores of layers for the work. */
  onStorage<Result>(work: (storage: OpenedStorage) => Promise<Result>): Promise<Result>;
}

export interface OpenedStorage {
  readonly layers: LayerStores;
  readonly settings: Settings;
  readonly log: Logger;
}

/** Returns the folder of the caller's shell, for relative paths: npm changes the working directory. */
export function callersFolder(): string {
  return process.env['INIT_CWD'] ?? process.cwd();
}

/** Reads the server's settings. Lines of the log go to standard error. */
export function settingsOfCommand(more: Readonly<Record<string, string>> = {}): {
  readonly settings: Settings;
  readonly log: Logger;
} {
  dropProxyVariables(process.env);
  const settings = readSettings({ ...process.env, ...more }, callersFolder());
  return { settings, log: createLogger(settings.logLevel, destination({ fd: 2, sync: true })) };
}

/** Imports a log from a file; null for standard input. Fails if a server or another command is running. */
export async function withImport(file: string | null): Promise<ImportReport> {
  const { settings, log } = settingsOfCommand();
  const foundation = await composeFoundation(settings, log, {
    besideServer: false,
    asCommand: true,
    importing: true,
    entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
    onFault: (what, cause) => log.warn({ err: cause, what }, 'Recovered from an error'),
  });
  try {
    const { claim } = foundation;
    if (claim === null) throw new TypeError('A foundation for an import holds a claim');
    return await importLogFile({ ...foundation, claim }, log, file);
  } finally {
    await foundation.close();
  }
}

/** `masterKeyNew` stands in for STRATA_MASTER_KEY_NEW; null for what the environment says. */
export async function withFoundation<Result>(
  masterKeyNew: string | null,
  run: (foundation: Foundation, settings: Settings, log: Logger) => Promise<Result>,
): Promise<Result> {
  const { settings, log } = settingsOfCommand(masterKeyNew === null ? {} : { STRATA_MASTER_KEY_NEW: masterKeyNew });
  const foundation = await composeFoundation(settings, log, {
    besideServer: true,
    asCommand: true,
    entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
    onFault: (what, cause) => log.warn({ err: cause, what }, 'Recovered from an error'),
  });
  try {
    return await run(foundation, settings, log);
  } finally {
    await foundation.close();
  }
}

export async function withAdminContext<Result>(
  operator: string,
  run: (context: AdminContext) => Promise<Result>,
): Promise<Result> {
  const { settings, log } = settingsOfCommand();
  const foundation = await composeFoundation(settings, log, {
    besideServer: true,
    asCommand: true,
    entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
    onFault: (what, cause) => log.warn({ err: cause, what }, 'Recovered from an error'),
  });
  try {
    await foundation.context.entities.barrier();
    const accountLogs = await openAccountLogs(foundation);
    const onStorage = async <Answer>(work: (storage: StorageContext) => Promise<Answer>): Promise<Answer> => {
      const { layers, close } = await openLayerStores(settings, foundation, log);
      try {
        return await work({ ...foundation.context, layers, log });
      } finally {
        await close();
      }
    };
    const withProjections = projectionsOf(foundation, settings, log);
    return await run({
      ...foundation.context,
      settings,
      withProjections,
      runningProcess: foundation.runningProcess,
      operator,
      walks: createPostgresVerificationWalks(foundation.pool),
      exportAccountLog: (account, file) =>
        onStorage(({ layers }) => {
          const exporting = { foundation, layers, settings, log, withProjections };
          if (file === null) return exportAccountLog(exporting, account, () => process.stdout);
          return exportAccountLogToFile(exporting, account, file);
        }),
      verifyLog: (options) =>
        onStorage(({ layers }) => verifyLog({ ...foundation.context, layers, log, accountLogs }, options)),
      listStorage: () => onStorage(listStorage),
      expireStorage: () =>
        onStorage(({ layers }) => expireStorage({ foundation, layers, settings, log, withProjections })),
      verifyStorage: (only) => onStorage((storage) => verifyStorage(storage, only)),
      onStorage: (work) => onStorage(({ layers }) => work({ layers, settings, log })),
    });
  } finally {
    await foundation.close();
  }
}
