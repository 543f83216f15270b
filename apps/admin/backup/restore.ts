/**
 * `deploy/restore.sh`: makes the database and the layers of a service what a backup holds, while its nodes are stopped.
 *
 * Invariants: everything that can be checked is checked before the first change, the master key above all. Nothing is
 * overwritten: the files of an embedded database are set aside, a database of the operator's must be empty, and to the
 * layers' store only what it lacks is added. So a restore that was cut short can be run again.
 */
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import { embeddedBinaries } from '../../../adapters/embedded-postgres/binaries.ts';
import { exists } from '../../../adapters/embedded-postgres/cluster.ts';
import { type ArchivedLog, restoreCluster } from '../../../adapters/embedded-postgres/saved-cluster.ts';
import { createFilesystemLayerStore } from '../../../adapters/filesystem/layer-store.ts';
import { processFacts } from '../../../adapters/node/process-facts.ts';
import { deriveMasterKey } from '../../../adapters/postgres/vault-cipher.ts';
import { lockDataDirectory } from '../../server/data-directory.ts';
import { masterKeysOf } from '../../server/foundation.ts';
import { openLayerStorage } from '../../server/layer-storage/stores.ts';
import type { Settings } from '../../server/settings.ts';
import { Refused } from '../answer.ts';
import { type BackupRecord, placesIn, readRecord } from './backup-record.ts';
import { checkpointsToLeaveOut, copyObjects } from './copy-layers.ts';
import { refuseEventStoreDb } from './event-store-refused.ts';
import { prepareRestore } from './postgres-programs.ts';

export interface Restoring {
  /** Those of the service that the backup becomes. */
  readonly settings: Settings;
  readonly folder: string;
  /** Null: the database as it was at the time of the backup. */
  readonly archive: ArchivedLog | null;
  readonly log: Logger;
  readonly say: (line: string) => void;
}

export async function restoreService(restoring: Restoring): Promise<void> {
  const { settings, folder, log, say } = restoring;
  refuseEventStoreDb(settings);
  const record = await readRecord(folder);
  await checkMasterKey(settings, record);
  const lock = await lockDataDirectory(settings.dataDir);
  try {
    const restoreDatabase = await databaseRestore(restoring, record);
    const store = await openLayerStorage(settings.layerStore, log);
    const saved = await createFilesystemLayerStore({ directory: placesIn(folder).layers });
    const { objects, bytes } = await copyObjects(saved, store, await checkpointsToLeaveOut(store));
    say(`Added ${objects} objects that the layers' store lacked, ${bytes} bytes`);
    await restoreDatabase();
    say(`The database is as it was saved at ${record.made_at}`);
    await rm(path.join(settings.dataDir, 'cache'), { recursive: true, force: true });
  } finally {
    await lock.release();
  }
}

/** Looks for the key without making one, as a start would. */
async function checkMasterKey(settings: Settings, record: BackupRecord): Promise<void> {
  const { dataDir, masterKey } = settings;
  const file = path.join(dataDir, 'master-key');
  const nothing = 'Nothing was changed';
  if (masterKey === null && !(await exists(file))) {
    const why = `${file} is not there and STRATA_MASTER_KEY is not set`;
    throw new Refused(`The master key is missing: ${why}. Put back the one that the service had. ${nothing}`);
  }
  const ids = (await masterKeysOf(settings)).map((key) => deriveMasterKey(key).id);
  if (ids.includes(record.master_key_id)) return;
  const where = masterKey === null ? file : 'STRATA_MASTER_KEY';
  throw new Refused(`${where} is not the master key that the service had when ${record.made_at} was saved. ${nothing}`);
}

/** Checks what the database needs, and returns the restore itself. */
async function databaseRestore(restoring: Restoring, record: BackupRecord): Promise<() => Promise<void>> {
  const { settings, folder, archive } = restoring;
  const isEmbedded = settings.databaseUrl === null;
  if (isEmbedded !== (record.database === 'embedded')) {
    const [had, has] = record.database === 'embedded' ? ['embedded', 'another'] : ['another', 'the embedded'];
    const advice = 'Restore it as it was, then move it (README, Moving to another database)';
    throw new Refused(`The backup is of ${had} PostgreSQL, and the settings name ${has} one. ${advice}`);
  }
  if (isEmbedded) return embeddedRestore(restoring, record);
  if (archive !== null) {
    throw new Refused(
      'A dump has no write-ahead log: --wal is for the embedded database (docs/operating.md, Point in time)',
    );
  }
  const owner = settings.databaseOwnerUrl ?? settings.databaseUrl ?? '';
  const { restore } = await prepareRestore(owner, record.postgresql);
  return () => restore(placesIn(folder).dump);
}

async function embeddedRestore(
  { settings, folder, archive, log, say }: Restoring,
  record: BackupRecord,
): Promise<() => Promise<void>> {
  const { version } = await embeddedBinaries();
  if (Number.parseInt(version, 10) !== record.postgresql) {
    throw new Refused(`The backup is of PostgreSQL ${record.postgresql}, and this installation has ${version}`);
  }
  if (archive !== null) await readdir(archive.folder);
  return async () => {
    const { dataDir } = settings;
    const aside = await restoreCluster({ dataDir, folder: placesIn(folder).database, processFacts, log, archive });
    if (aside !== null) say(`The files of the database before are in ${aside}: remove them when you are sure`);
  };
}
