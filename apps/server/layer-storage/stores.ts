/**
 * Opens the store of the platform's layers: a folder, or a bucket.
 *
 * Invariants: a bucket that cannot be used stops the start, or the command, with the setting that is wrong. The
 * library of S3 is loaded only where it is chosen.
 */
import type { Logger } from 'pino';
import { createFilesystemLayerStore } from '../../../adapters/filesystem/layer-store.ts';
import { createProcessMarks } from '../../../adapters/node/process-mark.ts';
import { type LayerStore, LayerStoreError, type LayerStoreErrorCode } from '../../../core/ports/layer-store.ts';
import { PartUnreachable } from '../part-unreachable.ts';
import type { Settings } from '../settings.ts';
import { SettingsError } from '../settings-reader.ts';
import type { S3Settings } from './s3.ts';

export type LayerStorageLog = Pick<Logger, 'warn'>;

export async function openLayerStorage(
  settings: Pick<Settings, 'layersDir' | 's3'>,
  log: LayerStorageLog,
): Promise<LayerStore> {
  const { layersDir, s3 } = settings;
  if (s3 === null) return createFilesystemLayerStore({ directory: layersDir, writers: await createProcessMarks() });
  const { createS3LayerStore } = await import('../../../adapters/s3/layer-store.ts');
  const { accessKeyId, secretAccessKey, ...place } = s3;
  const store = createS3LayerStore({ ...place, credentials: { accessKeyId, secretAccessKey } });
  try {
    // A listing: unlike an answer to HEAD, one to GET names its fault.
    await store.list('')[Symbol.asyncIterator]().next();
  } catch (error) {
    throw error instanceof LayerStoreError ? unusable(s3, error) : error;
  }
  try {
    await store.abortOldUploads();
  } catch (error) {
    log.warn({ err: error }, 'Uploads that dead processes left in the bucket were not removed');
  }
  return store;
}

function unusable(s3: S3Settings, error: LayerStoreError): Error {
  const { code, message } = error;
  const setting = SETTING_OF[code];
  const place = `the bucket ${s3.bucket} at ${s3.endpointUrl ?? `Amazon's ${s3.region}`}`;
  const text = `Strata cannot use ${place}: see ${setting ?? 'STRATA_S3_ENDPOINT'}\n  ${message}`;
  return AWAY.has(code) ? new PartUnreachable('layers', text, { cause: error }) : new SettingsError(text);
}

/** What ends by itself, or when the other side is started. */
const AWAY: ReadonlySet<LayerStoreErrorCode> = new Set([
  'layer-store-unavailable',
  'throttled',
  'timed-out',
  'unreachable',
]);

/** The setting that is most likely wrong. */
const SETTING_OF: { readonly [Code in LayerStoreErrorCode]?: string } = {
  'bucket-missing': 'STRATA_S3_BUCKET',
  'access-denied': 'STRATA_S3_ACCESS_KEY_ID, which may not list the bucket',
  'credentials-refused': 'STRATA_S3_ACCESS_KEY_ID and STRATA_S3_SECRET_ACCESS_KEY',
  'wrong-region': 'STRATA_S3_REGION',
  'clock-skewed': "this machine's clock",
};
