/**
 * The settings of a storage bucket: where it is, and how it lets this service in.
 *
 * Invariants: a text that becomes part of an address, a key or a header of a request has one form that no server
 * reads otherwise. A region is a part of the host of Amazon's endpoints, so it is as strict as a host.
 */
import { refuse } from '../../kernel/decider.ts';
import {
  BUCKET_ACCESS_KEY_ID_LENGTH_MAX,
  BUCKET_KEY_PREFIX_LENGTH_MAX,
  BUCKET_REGION_LENGTH_MAX,
  BUCKET_ROLE_ARN_LENGTH_MAX,
  BUCKET_SECRET_KEY_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
} from '../../kernel/limits.ts';
import type { BucketSetting, BucketSettingFault, Refusal } from '../../kernel/refusal.ts';
import { asciiLowerCase } from '../../kernel/text.ts';
import { isRoleArn } from '../role-trust.ts';

export const BUCKET_PROVIDERS = ['S3', 'R2', 'MINIO'] as const;
export type BucketProvider = (typeof BUCKET_PROVIDERS)[number];

export const BUCKET_AUTH_MODES = ['OIDC', 'STATIC_KEYS'] as const;
export type BucketAuthMode = (typeof BUCKET_AUTH_MODES)[number];

/** Where the objects are. It is fixed while repositories depend on the bucket. */
export interface BucketPlace {
  readonly bucketName: string;
  /** Empty, or ends in `/`. */
  readonly keyPrefix: string;
  /** `https://host[:port]`. Null: Amazon's endpoint of the region. */
  readonly endpointUrl: string | null;
}

/** How the bucket lets this service in. */
export type BucketAccess =
  | { readonly mode: 'OIDC'; readonly roleArn: string }
  | {
      readonly mode: 'STATIC_KEYS';
      readonly region: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
    };

export interface BucketSettings {
  readonly provider: BucketProvider;
  readonly place: BucketPlace;
  readonly access: BucketAccess;
}

/** The settings as a client sends them. An empty text is as good as null. */
export interface WantedBucketSettings {
  readonly provider: BucketProvider;
  readonly authMode: BucketAuthMode;
  readonly bucketName: string;
  readonly keyPrefix: string;
  readonly roleArn: string | null;
  readonly region: string | null;
  readonly endpointUrl: string | null;
  readonly accessKeyId: string | null;
  readonly secretAccessKey: string | null;
}

/** Returns settings in the form in which a client would send them, for changes of some of them. */
export function wantedOf({ provider, place, access }: BucketSettings): WantedBucketSettings {
  const keys = access.mode === 'STATIC_KEYS' ? access : null;
  return {
    provider,
    authMode: access.mode,
    ...place,
    roleArn: access.mode === 'OIDC' ? access.roleArn : null,
    region: keys?.region ?? null,
    accessKeyId: keys?.accessKeyId ?? null,
    secretAccessKey: keys?.secretAccessKey ?? null,
  };
}

/**
 * Checks the settings and gives them their one form. Settings of another mode are dropped. The endpoint's address is
 * not looked at: the rules of outgoing requests judge it.
 */
export function parseBucketSettings(
  wanted: WantedBucketSettings,
): { readonly settings: BucketSettings } | { readonly refused: Refusal } {
  const { provider, authMode, bucketName } = wanted;
  if (authMode === 'OIDC' && provider !== 'S3') return faulty('auth_mode', 'not-offered');
  if (bucketName === '') return faulty('bucket_name', 'missing');
  if (!isBucketName(bucketName)) return faulty('bucket_name', 'malformed');
  const keyPrefix = parseKeyPrefix(wanted.keyPrefix);
  if (keyPrefix === null) return faulty('key_prefix', 'malformed');
  const access = authMode === 'OIDC' ? parseRole(wanted) : parseKeys(wanted);
  if ('refused' in access) return access;
  // The platform chooses the endpoint where a role lets it in.
  const endpoint = authMode === 'OIDC' ? { url: null } : parseEndpoint(provider, wanted.endpointUrl);
  if ('refused' in endpoint) return endpoint;
  return { settings: { provider, place: { bucketName, keyPrefix, endpointUrl: endpoint.url }, access } };
}

type Refused = { readonly refused: Refusal };

function faulty(setting: BucketSetting, fault: BucketSettingFault): Refused {
  return refuse({ code: 'storage-bucket-setting', setting, fault });
}

/** The names that Amazon allows, which other providers share. One that reads like an IPv4 address would be a host. */
function isBucketName(text: string): boolean {
  const isName = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(text);
  return isName && !text.includes('..') && !/^\d+\.\d+\.\d+\.\d+$/.test(text);
}

/** Adds the slash at the end. Null for a prefix that a server or a tool may read as another key. */
function parseKeyPrefix(text: string): string | null {
  if (text === '') return '';
  const prefix = text.endsWith('/') ? text : `${text}/`;
  if (prefix.length > BUCKET_KEY_PREFIX_LENGTH_MAX) return null;
  const parts = prefix.slice(0, -1).split('/');
  return parts.every((part) => /^[A-Za-z0-9!_.*'()=-]+$/.test(part) && !/^\.{1,2}$/.test(part)) ? prefix : null;
}

function parseRole({ roleArn }: WantedBucketSettings): BucketAccess | Refused {
  if (roleArn === null || roleArn === '') return faulty('role_arn', 'missing');
  if (roleArn.length > BUCKET_ROLE_ARN_LENGTH_MAX || !isRoleArn(roleArn)) return faulty('role_arn', 'malformed');
  return { mode: 'OIDC', roleArn };
}

function parseKeys(wanted: WantedBucketSettings): BucketAccess | Refused {
  const { region, accessKeyId, secretAccessKey } = wanted;
  if (region === null || region === '') return faulty('region', 'missing');
  if (region.length > BUCKET_REGION_LENGTH_MAX || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(region)) {
    return faulty('region', 'malformed');
  }
  if (accessKeyId === null || accessKeyId === '') return faulty('access_key_id', 'missing');
  // It stands between slashes and before a comma in the header that signs a request.
  if (accessKeyId.length > BUCKET_ACCESS_KEY_ID_LENGTH_MAX || !/^[A-Za-z0-9._~+=@:-]+$/.test(accessKeyId)) {
    return faulty('access_key_id', 'malformed');
  }
  if (secretAccessKey === null || secretAccessKey === '') return faulty('secret_access_key', 'missing');
  if (secretAccessKey.length > BUCKET_SECRET_KEY_LENGTH_MAX || !/^[\x21-\x7e]+$/.test(secretAccessKey)) {
    return faulty('secret_access_key', 'malformed');
  }
  return { mode: 'STATIC_KEYS', region, accessKeyId, secretAccessKey };
}

function parseEndpoint(provider: BucketProvider, text: string | null): { readonly url: string | null } | Refused {
  if (text === null && provider === 'S3') return { url: null };
  if (text === null || (text === '' && provider !== 'S3')) return faulty('endpoint_url', 'missing');
  if (text.length > OUTGOING_URL_LENGTH_MAX) return refuse(TOO_LONG);
  const [, origin] = /^(https?:\/\/[^/?#\\]+)\/?$/i.exec(text) ?? [];
  return origin === undefined ? faulty('endpoint_url', 'malformed') : { url: asciiLowerCase(origin) };
}

const TOO_LONG: Refusal = { code: 'storage-bucket-endpoint-refused', fault: 'url-too-long' };
