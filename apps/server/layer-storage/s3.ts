/**
 * The settings of the platform's own bucket: `STRATA_STORAGE` and `STRATA_S3_*`.
 *
 * Invariants: no key is printed or logged. The operator chose the endpoint, so that it may be private and plain
 * http.
 */
import type { SettingsReader } from '../settings-reader.ts';

export interface S3Settings {
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

/** Returns null for the file system. The settings are read and checked in either case. */
export function readS3Settings({ text, fault, oneOf }: SettingsReader): S3Settings | null {
  const chosen = oneOf('STRATA_STORAGE', ['filesystem', 's3'], 'filesystem') === 's3';
  /** A setting that `s3` needs; its value is printed unless it is secret. */
  const needed = (name: string, form: RegExp, expected: string, isSecret: boolean): string => {
    const value = text(name);
    if (value === null && !chosen) return '';
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
  if (!chosen) return null;
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
