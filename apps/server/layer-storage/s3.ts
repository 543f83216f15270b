/**
 * The platform's layers in a bucket of its own: the settings `STRATA_S3_*`.
 *
 * Invariants: no key is printed or logged. The operator chose the endpoint, so that it may be private and plain
 * http. A bucket that answers and cannot be used stops the start, or the command, with the setting that is wrong. One
 * that does not answer is a `PartUnreachable`. Only a server tries more than a listing.
 */
import type { Logger } from 'pino';
import type { S3LayerStore } from '../../../adapters/s3/layer-store.ts';
import { LayerStoreError, type LayerStoreErrorCode } from '../../../core/ports/layer-store.ts';
import type { Tracing } from '../../../core/ports/tracing.ts';
import { PartUnreachable } from '../part-unreachable.ts';
import { SettingsError, type SettingsReader } from '../settings-reader.ts';
import type { LayerStorageLog, LayerStoreKind, OpenLayers, StoreState } from './store-kind.ts';

interface S3Settings {
  /** Null: Amazon's endpoint of the region. */
  readonly endpointUrl: string | null;
  readonly region: string;
  readonly bucket: string;
  /** Empty, or ends in `/`. */
  readonly prefix: string;
  readonly pathStyle: boolean;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

export const S3: LayerStoreKind<'s3', S3Settings> = {
  kind: 's3',
  read,
  placeOutside: ({ bucket }) => `the bucket ${bucket}`,
  open,
};

function read({ text, fault, oneOf }: SettingsReader, { isChosen }: { readonly isChosen: boolean }): S3Settings {
  /** A setting that `s3` needs; its value is printed unless it is secret. */
  const needed = (name: string, form: RegExp, expected: string, isSecret: boolean): string => {
    const value = text(name);
    if (value === null && !isChosen) return '';
    if (value === null) fault(name, 'not set', `${expected}, for STRATA_STORAGE=s3`);
    else if (!form.test(value)) fault(name, isSecret ? 'set, but of another form' : JSON.stringify(value), expected);
    return value ?? '';
  };
  const bucket = needed('STRATA_S3_BUCKET', BUCKET, 'the name of a bucket', false);
  const accessKeyId = needed('STRATA_S3_ACCESS_KEY_ID', KEY, 'the id of an access key', true);
  const secretAccessKey = needed('STRATA_S3_SECRET_ACCESS_KEY', KEY, 'the secret of that access key', true);
  const endpointUrl = text('STRATA_S3_ENDPOINT');
  if (endpointUrl !== null && !isEndpoint(endpointUrl)) {
    fault('STRATA_S3_ENDPOINT', printable(endpointUrl), 'an http or https URL without a path, such as https://s3:9000');
  }
  const region = text('STRATA_S3_REGION') ?? 'us-east-1';
  if (!/^[a-z0-9-]{1,50}$/.test(region)) fault('STRATA_S3_REGION', JSON.stringify(region), 'a region, as us-east-1');
  const prefix = (text('STRATA_S3_PREFIX') ?? '').replace(/\/*$/, '/').replace(/^\/$/, '');
  if (!PREFIX.test(prefix)) {
    fault('STRATA_S3_PREFIX', JSON.stringify(prefix), 'names of letters, digits, ., _ and -, separated by /');
  }
  const style = oneOf('STRATA_S3_PATH_STYLE', ['true', 'false'], endpointUrl === null ? 'false' : 'true');
  return { endpointUrl, region, bucket, prefix, pathStyle: style === 'true', accessKeyId, secretAccessKey };
}

/** Also the old form of names, with capitals and `_`. An ARN would choose an endpoint of its own. */
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/;
const KEY = /^[\x21-\x7e]{1,256}$/;
const PREFIX = /^([A-Za-z0-9_-][A-Za-z0-9._-]{0,99}\/){0,10}$/;

function isEndpoint(text: string): boolean {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { pathname, search, hash, username, password } = new URL(text);
  return pathname === '/' && search + hash + username + password === '';
}

/** The text before an @ may be a secret, so it is not printed. */
function printable(endpoint: string): string {
  return endpoint.includes('@') ? 'set, but with something before an @' : JSON.stringify(endpoint);
}

async function open(
  settings: S3Settings,
  log: LayerStorageLog,
  tracing: Pick<Tracing, 'traceparent'> | null,
): Promise<OpenLayers> {
  const { createS3LayerStore } = await import('../../../adapters/s3/layer-store.ts');
  const { endpointUrl, region, bucket, prefix, pathStyle, accessKeyId, secretAccessKey } = settings;
  const credentials = { accessKeyId, secretAccessKey };
  const sent = tracing === null ? {} : { traceparent: () => tracing.traceparent() };
  const store = createS3LayerStore({ endpointUrl, region, bucket, prefix, pathStyle, credentials, ...sent });
  let holdsLayers: boolean;
  try {
    // A listing: unlike an answer to HEAD, one to GET names its fault.
    holdsLayers = (await store.list('repositories/')[Symbol.asyncIterator]().next()).done !== true;
  } catch (error) {
    throw error instanceof LayerStoreError ? unusable(settings, error) : error;
  }
  try {
    await store.abortOldUploads();
  } catch (error) {
    log.warn({ err: error }, 'Uploads that dead processes left in the bucket were not removed');
  }
  return { store, check: (errors) => check(settings, store, { holdsLayers, log: errors }) };
}

/**
 * What the check refuses ends the start of a service that has no layer yet. Another one goes on: it reads what it has,
 * and a push is refused where it needs what is missing.
 */
async function check(
  settings: S3Settings,
  store: S3LayerStore,
  { holdsLayers, log }: { readonly holdsLayers: boolean; readonly log: Pick<Logger, 'warn' | 'error'> },
): Promise<StoreState> {
  try {
    const { conditionalWrites } = await store.check();
    if (!conditionalWrites) log.warn({ conditionalWrites }, NO_CONDITIONS);
    return 'whole';
  } catch (error) {
    if (!(error instanceof LayerStoreError)) throw error;
    if (!holdsLayers) throw unusable(settings, error);
    if (AWAY.has(error.code)) {
      // At the start it has just answered the listing. How its calls end from now on says more than this one.
      log.warn({ err: error }, 'The bucket of the layers could not be tried');
      return 'unknown';
    }
    log.error({ err: error }, 'The bucket of the layers lacks what pushes need, and some will be refused');
    return 'lacking';
  }
}

const NO_CONDITIONS =
  'The bucket of the layers does not keep the condition that a new key is free: nodes look before they write';

function unusable({ bucket, endpointUrl, region }: S3Settings, error: LayerStoreError): Error {
  const { code, message } = error;
  const setting = SETTING_OF[code] ?? 'STRATA_S3_ENDPOINT';
  const place = `the bucket ${bucket} at ${endpointUrl ?? `Amazon's ${region}`}`;
  const text = `Strata cannot use ${place}: see ${setting}\n  ${message}`;
  return AWAY.has(code) ? new PartUnreachable('layers', text, { cause: error }) : new SettingsError(text);
}

/** What ends by itself, or when the other side is started. */
const AWAY: ReadonlySet<LayerStoreErrorCode> = new Set([
  'layer-store-unavailable',
  'throttled',
  'timed-out',
  'unreachable',
]);

const LACKS_PERMISSION = 'STRATA_S3_ACCESS_KEY_ID, which lacks a permission';

/** The setting that is most likely wrong. */
const SETTING_OF: { readonly [Code in LayerStoreErrorCode]?: string } = {
  'bucket-missing': 'STRATA_S3_BUCKET',
  'access-denied': 'STRATA_S3_ACCESS_KEY_ID',
  'get-denied': LACKS_PERMISSION,
  'head-denied': LACKS_PERMISSION,
  'put-denied': LACKS_PERMISSION,
  'delete-denied': LACKS_PERMISSION,
  'list-denied': 'STRATA_S3_ACCESS_KEY_ID, which may not list the bucket',
  'credentials-refused': 'STRATA_S3_ACCESS_KEY_ID and STRATA_S3_SECRET_ACCESS_KEY',
  'wrong-region': 'STRATA_S3_REGION',
  'clock-skewed': "this machine's clock",
};
