/** `strata bucket`. */
import { BUCKET_AUTH_MODES, BUCKET_PROVIDERS } from '../client/operations.ts';
import type { ArgumentDefinition, CommandDefinition, OptionDefinition } from './definition.ts';

const ID: ArgumentDefinition = { name: 'id', description: 'the id of the bucket' };
const BUCKET_NAME: OptionDefinition = {
  name: 'bucket-name',
  kind: 'text',
  value: 'NAME',
  description: 'the bucket, as its provider names it',
};

const SETTINGS: readonly OptionDefinition[] = [
  { name: 'provider', kind: 'text', value: 'NAME', choices: BUCKET_PROVIDERS, description: 'who keeps the bucket' },
  {
    name: 'auth-mode',
    kind: 'text',
    value: 'MODE',
    choices: BUCKET_AUTH_MODES,
    description: 'OIDC: a role that trusts the service; STATIC_KEYS: an access key',
  },
  { name: 'key-prefix', kind: 'text', value: 'TEXT', description: 'every key begins with it' },
  { name: 'role-arn', kind: 'text', value: 'ARN', description: 'the role, with OIDC' },
  { name: 'region', kind: 'text', value: 'NAME', description: 'with STATIC_KEYS' },
  { name: 'endpoint-url', kind: 'text', value: 'URL', description: 'with R2 and MINIO' },
  {
    name: 'access-key-id',
    kind: 'text',
    value: 'ID',
    description: 'with STATIC_KEYS; its secret is read from SERVICE_SECRET_ACCESS_KEY',
  },
  { name: 'secret-access-key-stdin', kind: 'flag', description: 'read the secret of the key from standard input' },
  { name: 'default', kind: 'flag', description: 'new repositories are in this bucket' },
];

export const BUCKET_COMMANDS: readonly CommandDefinition[] = [
  {
    name: 'bucket oidc-setup',
    summary: 'Show what a role in your cloud must trust',
    load: async () => (await import('../commands/bucket.ts')).oidcSetup,
  },
  {
    name: 'bucket list',
    summary: 'List storage buckets',
    load: async () => (await import('../commands/bucket.ts')).list,
  },
  {
    name: 'bucket get',
    summary: 'Show a storage bucket',
    arguments: [ID],
    load: async () => (await import('../commands/bucket.ts')).get,
  },
  {
    name: 'bucket create',
    summary: 'Add a storage bucket; verify it before use',
    arguments: [{ name: 'name', description: 'a label' }],
    options: [{ ...BUCKET_NAME, required: true }, ...SETTINGS],
    examples: [
      'strata bucket create layers --bucket-name acme-layers --role-arn arn:aws:iam::123456789012:role/strata',
      'strata bucket create local --provider MINIO --bucket-name layers --region us-east-1 --endpoint-url https://minio.example --access-key-id KEY --secret-access-key-stdin <secret.txt',
    ],
    load: async () => (await import('../commands/bucket.ts')).create,
  },
  {
    name: 'bucket edit',
    summary: 'Change a storage bucket',
    arguments: [ID],
    options: [
      { name: 'name', kind: 'text', value: 'NAME', description: 'a label' },
      BUCKET_NAME,
      ...SETTINGS,
      { name: 'no-default', kind: 'flag', description: 'new repositories are not in this bucket' },
    ],
    load: async () => (await import('../commands/bucket.ts')).edit,
  },
  {
    name: 'bucket verify',
    summary: 'Write, read and delete an object in the bucket',
    arguments: [ID],
    load: async () => (await import('../commands/bucket.ts')).verify,
  },
  {
    name: 'bucket errors',
    summary: 'List errors of storage buckets, newest first',
    options: [
      { name: 'limit', kind: 'number', value: 'N', min: 1, max: 100, description: 'at most this many; 50 by default' },
      { name: 'offset', kind: 'number', value: 'N', min: 0, max: 1_000_000, description: 'leave out this many' },
      { name: 'storage-bucket-id', kind: 'text', value: 'ID', description: 'of this bucket only' },
    ],
    load: async () => (await import('../commands/bucket.ts')).errors,
  },
  {
    name: 'bucket delete',
    summary: 'Forget a storage bucket; its objects stay',
    arguments: [ID],
    options: [{ name: 'yes', kind: 'flag', description: 'do it without a question' }],
    load: async () => (await import('../commands/bucket.ts')).remove,
  },
];
