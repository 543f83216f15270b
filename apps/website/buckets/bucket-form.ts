/**
 * The form that makes and changes a storage bucket, one for each kind.
 *
 * Invariants: a form is checked by the API's own schema, and its fields have the API's names. The secret key is
 * never shown again.
 */
import type { z } from 'zod';
import type { BucketAuthMode, BucketProvider } from '../../../core/account/buckets/settings.ts';
import {
  BUCKET_ACCESS_KEY_ID_LENGTH_MAX,
  BUCKET_KEY_PREFIX_LENGTH_MAX,
  BUCKET_REGION_LENGTH_MAX,
  BUCKET_ROLE_ARN_LENGTH_MAX,
  BUCKET_SECRET_KEY_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
  STORAGE_BUCKET_NAME_LENGTH_MAX,
} from '../../../core/kernel/limits.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { FoundBucket } from '../../../core/use-cases/buckets/buckets.ts';
import { NEW_STORAGE_BUCKET } from '../../api/schemas/storage-buckets.ts';
import { refusedField } from '../../front-door/texts/refusals.ts';
import { checkBox, type Field, type FieldErrors, type Fields, textField } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { type RefusedForm, refusedForm } from '../layout/refused.ts';

type TextSetting = 'role_arn' | 'region' | 'endpoint_url' | 'access_key_id' | 'secret_access_key';

export interface BucketKind {
  readonly title: string;
  readonly provider: BucketProvider;
  readonly authMode: BucketAuthMode;
  /** The fields beside those of every kind. */
  readonly settings: readonly TextSetting[];
  readonly region: string;
  readonly endpointHint: string;
}

const KEYS = ['region', 'access_key_id', 'secret_access_key'] as const;

export const BUCKET_KINDS: { readonly [Kind in 's3' | 's3-keys' | 'r2' | 'minio']: BucketKind } = {
  s3: {
    title: 'Amazon S3, without a key',
    provider: 'S3',
    authMode: 'OIDC',
    settings: ['role_arn'],
    region: '',
    endpointHint: '',
  },
  's3-keys': {
    title: 'Amazon S3, with a key',
    provider: 'S3',
    authMode: 'STATIC_KEYS',
    settings: [...KEYS, 'endpoint_url'],
    region: '',
    endpointHint: 'Leave it empty for Amazon’s own.',
  },
  r2: {
    title: 'Cloudflare R2',
    provider: 'R2',
    authMode: 'STATIC_KEYS',
    settings: ['endpoint_url', ...KEYS],
    region: 'auto',
    endpointHint: 'https://ACCOUNT.r2.cloudflarestorage.com, without the name of the bucket.',
  },
  minio: {
    title: 'MinIO',
    provider: 'MINIO',
    authMode: 'STATIC_KEYS',
    settings: ['endpoint_url', ...KEYS],
    region: 'us-east-1',
    endpointHint: 'Such as https://minio.example:9000, without a path.',
  },
};

export function kindNamed(name: string): BucketKind | null {
  const kinds: Readonly<Record<string, BucketKind>> = BUCKET_KINDS;
  return Object.hasOwn(kinds, name) ? (kinds[name] ?? null) : null;
}

/** Returns the kind of a bucket that exists. */
export function kindOf({ settings: { provider, authMode } }: FoundBucket): BucketKind {
  const kinds = Object.values(BUCKET_KINDS);
  const kind = kinds.find((one) => one.provider === provider && one.authMode === authMode);
  if (kind === undefined) throw new TypeError(`No form for ${provider} with ${authMode}`);
  return kind;
}

/** What stands in the fields, by the API's names. */
export type EnteredBucket = Readonly<
  Record<'name' | 'bucket_name' | 'key_prefix' | TextSetting, string> & { is_default: boolean }
>;

export function newBucketEntered({ region }: BucketKind): EnteredBucket {
  const texts = { name: '', bucket_name: '', key_prefix: '', role_arn: '', endpoint_url: '', access_key_id: '' };
  return { ...texts, secret_access_key: '', region, is_default: false };
}

export function enteredIn(fields: Fields): EnteredBucket {
  const text = (name: string): string => fields.text(name).trim();
  return {
    name: text('name'),
    bucket_name: text('bucket_name'),
    key_prefix: text('key_prefix'),
    role_arn: text('role_arn'),
    region: text('region'),
    endpoint_url: text('endpoint_url'),
    access_key_id: text('access_key_id'),
    secret_access_key: text('secret_access_key'),
    is_default: fields.has('is_default'),
  };
}

export function enteredOf({ bucket, settings, isDefault }: FoundBucket): EnteredBucket {
  return {
    name: bucket.name,
    bucket_name: settings.bucketName,
    key_prefix: settings.keyPrefix,
    role_arn: settings.roleArn ?? '',
    region: settings.region ?? '',
    endpoint_url: settings.endpointUrl ?? '',
    access_key_id: settings.accessKeyId ?? '',
    secret_access_key: '',
    is_default: isDefault,
  };
}

const LABELS = {
  bucket_name: 'Bucket',
  role_arn: 'Role',
  region: 'Region',
  endpoint_url: 'Endpoint',
  access_key_id: 'Id of the access key',
  secret_access_key: 'Secret access key',
} as const;

/** Says of each field that must not be empty and is that it is required: of all together. A stored secret may stay. */
function emptyFields({ provider, settings }: BucketKind, entered: EnteredBucket, isNew: boolean): FieldErrors {
  const optional: readonly string[] = [provider === 'S3' ? 'endpoint_url' : '', isNew ? '' : 'secret_access_key'];
  const needed = settings.filter((name) => !optional.includes(name));
  const empty = (['bucket_name', ...needed] as const).filter((name) => entered[name] === '');
  return Object.fromEntries(empty.map((name) => [name, `${LABELS[name]} is required`]));
}

/** Returns the settings in the form of the API, or the errors of a form that is not complete. */
export function parseBucket(
  kind: BucketKind,
  entered: EnteredBucket,
  isNew: boolean,
): z.output<typeof NEW_STORAGE_BUCKET> | { readonly errors: FieldErrors } {
  const empty = emptyFields(kind, entered, isNew);
  const parsed = NEW_STORAGE_BUCKET.safeParse({
    ...entered,
    endpoint_url: entered.endpoint_url === '' ? null : entered.endpoint_url,
    provider: kind.provider,
    auth_mode: kind.authMode,
  });
  if (parsed.success) return Object.keys(empty).length === 0 ? parsed.data : { errors: empty };
  const wrong = Object.fromEntries(parsed.error.issues.map(({ path, message }) => [String(path[0]), message]));
  return { errors: { ...wrong, ...empty } };
}

/** Puts each refusal beside the field that caused it. */
export function refusedBucket(refusal: Refusal): RefusedForm {
  const field = refusal.code === 'storage-bucket-name-taken' ? 'name' : (refusedField(refusal) ?? 'form');
  return refusedForm(refusal, { [refusal.code]: field });
}

export function bucketFields(kind: BucketKind, entered: EnteredBucket, errors: FieldErrors, isNew: boolean): Html {
  const field = (name: keyof EnteredBucket, more: Omit<Field, 'name' | 'value' | 'error'>): Html =>
    textField({ name, value: String(entered[name]), error: errors[name], verbatim: name !== 'name', ...more });
  const settings: { readonly [Setting in TextSetting]: () => Html } = {
    role_arn: () =>
      field('role_arn', {
        label: LABELS.role_arn,
        hint: 'The ARN of the role that trusts this service, such as arn:aws:iam::123456789012:role/strata',
        required: true,
        lengthMax: BUCKET_ROLE_ARN_LENGTH_MAX,
      }),
    region: () => field('region', { label: LABELS.region, required: true, lengthMax: BUCKET_REGION_LENGTH_MAX }),
    endpoint_url: () =>
      field('endpoint_url', {
        label: LABELS.endpoint_url,
        hint: kind.endpointHint,
        type: 'url',
        lengthMax: OUTGOING_URL_LENGTH_MAX,
        required: kind.provider !== 'S3',
      }),
    access_key_id: () =>
      field('access_key_id', {
        label: LABELS.access_key_id,
        required: true,
        lengthMax: BUCKET_ACCESS_KEY_ID_LENGTH_MAX,
        autocomplete: 'off',
      }),
    secret_access_key: () =>
      field('secret_access_key', {
        label: LABELS.secret_access_key,
        type: 'password',
        autocomplete: 'off',
        required: isNew,
        hint: isNew
          ? 'It is stored encrypted and never shown again.'
          : 'Leave it empty to keep the one that is stored.',
        lengthMax: BUCKET_SECRET_KEY_LENGTH_MAX,
      }),
  };
  return html`${field('name', {
    label: 'Name',
    hint: 'What you will know it by here. It stays in the record of your account.',
    required: true,
    lengthMax: STORAGE_BUCKET_NAME_LENGTH_MAX,
  })}${field('bucket_name', { label: LABELS.bucket_name, required: true, lengthMax: 63 })}${field('key_prefix', {
    label: 'Prefix (optional)',
    hint: 'Keys begin with it, so that the bucket can hold other things too.',
    lengthMax: BUCKET_KEY_PREFIX_LENGTH_MAX,
  })}${kind.settings.map((name) => settings[name]())}<div>${checkBox({
    name: 'is_default',
    value: 'true',
    label: 'Use it for new repositories',
    checked: entered.is_default,
  })}<p class="hint">Repositories whose creator names no bucket are in this one.</p></div>`;
}
