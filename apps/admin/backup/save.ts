/**
 * `deploy/backup.sh`: saves the database and the layers of a service into a new folder, while its nodes run.
 *
 * Invariants: the layers are copied before the database, and what is newer of them after it, so that the backup holds
 * the layers of the database's copy even if a purge or a sweep removes some before the second copy. The master key is
 * never part of the backup. Nothing but the folder is written.
 */
import { chmod, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import { exists } from '../../../adapters/embedded-postgres/cluster.ts';
import { saveCluster } from '../../../adapters/embedded-postgres/saved-cluster.ts';
import { createFilesystemLayerStore } from '../../../adapters/filesystem/layer-store.ts';
import { systemClock } from '../../../adapters/node/clock.ts';
import { createMasterKeyring } from '../../../adapters/postgres/master-keyring.ts';
import { type Foundation, masterKeysOf } from '../../server/foundation.ts';
import { openLayerStorage } from '../../server/layer-storage/stores.ts';
import type { Settings } from '../../server/settings.ts';
import { Refused } from '../answer.ts';
import { withFoundation } from '../context.ts';
import { placesIn, writeRecord } from './backup-record.ts';
import { copyObjects, copyUsedStore } from './copy-layers.ts';
import { refuseEventStoreDb } from './event-store-refused.ts';
import { dumpDatabase, majorVersionOf } from './postgres-programs.ts';

type Say = (line: string) => void;

/** `settings` are those of the service; `folder` must be new, or empty. */
export async function saveService(settings: Settings, folder: string, say: Say): Promise<void> {
  refuseEventStoreDb(settings);
  // Opening it would make an empty one.
  if (settings.databaseUrl === null && !(await exists(path.join(settings.dataDir, 'postgres')))) {
    throw new Refused(`There is no database in ${settings.dataDir}: run this with the settings of the server`);
  }
  await makeFolder(settings, folder);
  await withFoundation(null, (foundation, _, log) => saveWith({ settings, foundation, log, folder, say }));
}

interface Saving {
  readonly settings: Settings;
  readonly foundation: Foundation;
  readonly log: Logger;
  readonly folder: string;
  readonly say: Say;
}

async function saveWith({ settings, foundation, log, folder, say }: Saving): Promise<void> {
  const places = placesIn(folder);
  const store = await openLayerStorage(settings.layerStore, log);
  const copy = await createFilesystemLayerStore({ directory: places.layers });
  const before = await copyObjects(store, copy);
  say(`Copied ${before.objects} objects of the layers' store, ${before.bytes} bytes`);
  const record = {
    format: 1,
    made_at: systemClock.now(),
    ...(await saveDatabase(settings, foundation, folder)),
    master_key_id: await masterKeyId(settings, foundation),
  } as const;
  say('The database is saved');
  await foundation.context.failpoint('backup-database-saved');
  const after = await copyUsedStore(store, copy);
  say(`Copied ${after.objects} objects that are newer, ${after.bytes} bytes`);
  for (const id of after.lacking)
    say(`The service itself has lost layers of ${id}: log verify --references names them`);
  await writeRecord(folder, record);
  say(`The backup in ${folder} is whole. ${keyAdvice(settings)}`);
}

async function saveDatabase(settings: Settings, foundation: Foundation, folder: string) {
  const owner = foundation.ownerConnectionString ?? foundation.connectionString;
  const { database, dump } = placesIn(folder);
  await mkdir(database, { mode: 0o700 });
  const kind = settings.databaseUrl === null ? 'embedded' : 'dump';
  if (kind === 'embedded') {
    await saveCluster({ ownerConnectionString: owner, dataDir: settings.dataDir, folder: database });
  } else await dumpDatabase(owner, dump);
  return { database: kind, postgresql: await majorVersionOf(owner) } as const;
}

/** Other users of the machine must not read what is in it. */
async function makeFolder({ dataDir }: Settings, folder: string): Promise<void> {
  const within = path.relative(dataDir, folder);
  if (within === '' || !within.startsWith('..'))
    throw new Refused(`${folder} is in the data directory: choose another`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if ((await readdir(folder)).length > 0)
    throw new Refused(`${folder} is not empty: give each backup a folder of its own`);
  await chmod(folder, 0o700);
}

async function masterKeyId(settings: Settings, { pool }: Foundation): Promise<string> {
  const { key } = await createMasterKeyring({ pool, candidates: () => masterKeysOf(settings) }).current();
  return key.id;
}

function keyAdvice({ dataDir, masterKey }: Settings): string {
  const where = masterKey === null ? path.join(dataDir, 'master-key') : 'STRATA_MASTER_KEY';
  return `It does not hold the master key (${where}), without which nobody can read the vault: keep that elsewhere`;
}
