/**
 * What `strata-admin` works with: the server's own foundation, opened for one command.
 *
 * Must stay true: a running server is joined, never stopped; without one the embedded database is started under
 * the same lock and stopped afterwards; the log goes to standard error.
 */
import { destination } from 'pino';
import { createFilesystemLayerStore } from '../../adapters/filesystem/layer-store.ts';
import type { DeviceSessionId } from '../../core/kernel/ids.ts';
import { composeFoundation, type Foundation } from '../server/foundation.ts';
import { createLogger } from '../server/logger.ts';
import { readSettings } from '../server/settings.ts';
import { findDeviceSession } from './find-device-session.ts';
import { type LogReport, verifyLog } from './verify-log.ts';
import type { KnownRepository } from './known-repositories.ts';
import { type ProjectionReport, rebuildProjections } from './rebuild-projections.ts';
import { type ListedStorage, listStorage, type StorageReport, verifyStorage } from './storage.ts';

/** One command needs few entities. */
const ENTITIES_SIZE_BYTES_MAX = 64 * 1024 * 1024;

export type AdminContext = Foundation['context'] & {
  rebuildProjections(options: { readonly verify: boolean }): Promise<readonly ProjectionReport[]>;
  /** The login that waits for its user under a code. */
  findDeviceSession(userCode: string): Promise<DeviceSessionId>;
  verifyLog(options: { readonly references: boolean }): Promise<LogReport>;
  listStorage(): Promise<readonly ListedStorage[]>;
  /** Of one repository, or of all. */
  verifyStorage(only: KnownRepository | null): Promise<StorageReport>;
};

export async function withAdminContext<Result>(run: (context: AdminContext) => Promise<Result>): Promise<Result> {
  const settings = readSettings(process.env, process.env['INIT_CWD'] ?? process.cwd());
  const log = createLogger(settings.logLevel, destination({ fd: 2, sync: true }));
  const foundation = await composeFoundation(settings, log, {
    besideServer: true,
    entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
    onFault: (what, cause) => log.warn({ err: cause, what }, 'A fault was survived'),
  });
  try {
    await foundation.context.entities.barrier();
    const openStorage = async () => ({
      events: foundation.context.events,
      layers: await createFilesystemLayerStore({ directory: settings.layersDir }),
      log,
    });
    return await run({
      ...foundation.context,
      rebuildProjections: (options) => rebuildProjections(foundation, settings, log, options),
      findDeviceSession: (userCode) => findDeviceSession(foundation, log, userCode),
      verifyLog: (options) => verifyLog(foundation.context, settings, log, options),
      listStorage: async () => listStorage(await openStorage()),
      verifyStorage: async (only) => verifyStorage(await openStorage(), only),
    });
  } finally {
    await foundation.close();
  }
}
