/**
 * `strata bucket …`.
 *
 * Invariants: a secret key comes from the environment or from standard input, never from an argument, which other
 * processes of the machine can read.
 */
import type { StorageBucket, StorageBucketErrorList } from '../client/operations.ts';
import { confirm } from '../session/confirm.ts';
import type { Context, Given } from '../session/context.ts';
import { usageFailure } from '../session/failure.ts';
import { type Column, fieldsText, tableText } from '../terminal/table.ts';
import { showable } from '../terminal/text.ts';
import { timeCell } from '../terminal/values.ts';
import { given as givenOnly, show } from './show.ts';

const COLUMNS: readonly Column<StorageBucket>[] = [
  { title: 'ID', text: ({ id }) => id, rigid: true },
  { title: 'NAME', text: ({ name }) => name },
  {
    title: 'STATUS',
    text: ({ status }) => status,
    colour: ({ status }) => (status === 'VERIFIED' ? 'green' : status === 'FAILED' ? 'red' : 'yellow'),
  },
  { title: 'PLACE', text: ({ provider, bucket_name, key_prefix }) => `${provider} ${bucket_name}/${key_prefix}` },
  { title: 'DEFAULT', text: ({ is_default }) => (is_default ? 'default' : '') },
  { title: 'REPOSITORIES', text: ({ repository_count }) => String(repository_count), right: true },
];

const ERROR_COLUMNS: readonly Column<StorageBucketErrorList['errors'][number]>[] = [
  { title: 'BUCKET', text: ({ storage_bucket_id }) => storage_bucket_id, rigid: true },
  { title: 'AT', text: ({ occurred_at }, exact) => timeCell(occurred_at, exact) },
  { title: 'OPERATION', text: ({ operation }) => operation },
  { title: 'MESSAGE', text: ({ message }) => message },
];

const yesNo = (value: boolean): string => (value ? 'yes' : 'no');

function bucketText({ terminal }: Context, bucket: StorageBucket): string {
  const exact = !terminal.isInteractive;
  return fieldsText(terminal, [
    ['id', bucket.id],
    ['name', bucket.name],
    ['status', bucket.status],
    ...(bucket.last_error === null ? [] : [['error', bucket.last_error] as const]),
    ['provider', bucket.provider],
    ['access', bucket.auth_mode],
    ['bucket', bucket.bucket_name],
    ['prefix', bucket.key_prefix],
    ...(bucket.role_arn === null ? [] : [['role', bucket.role_arn] as const]),
    ...(bucket.region === null ? [] : [['region', bucket.region] as const]),
    ...(bucket.endpoint_url === null ? [] : [['endpoint', bucket.endpoint_url] as const]),
    ...(bucket.access_key_id === null ? [] : [['access key', bucket.access_key_id] as const]),
    ['default', yesNo(bucket.is_default)],
    ...(bucket.conditional_writes === null ? [] : [['conditional writes', yesNo(bucket.conditional_writes)] as const]),
    ['repositories', String(bucket.repository_count)],
    ['verified', timeCell(bucket.last_validated_at, exact)],
  ]);
}

export async function oidcSetup(context: Context): Promise<void> {
  const { terminal } = context;
  await show(context, 'getOidcSetup', {}, ({ issuer, audience, subject, trust_policy: policy }) => {
    const fields = fieldsText(terminal, [
      ['issuer', issuer],
      ['audience', audience],
      ['subject', subject],
    ]);
    return `${fields}\n${JSON.stringify(policy, null, 2).split('\n').map(showable).join('\n')}\n`;
  });
}

export async function list(context: Context): Promise<void> {
  await show(context, 'listStorageBuckets', {}, (found) => tableText(context.terminal, COLUMNS, found.storage_buckets));
}

export async function get(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  await show(context, 'getStorageBucket', { path }, (found) => bucketText(context, found));
}

export async function create(context: Context, given: Given): Promise<void> {
  const body = newBucket(given, await settingsOf(context, given));
  await show(context, 'createStorageBucket', { body }, (made) => {
    const next = `Next: strata bucket verify ${made.id}\n`;
    return bucketText(context, made) + (context.terminal.isInteractive ? next : '');
  });
}

/** What the service needs and was not given goes as an empty text, which it refuses by the name of the field. */
function newBucket(given: Given, settings: Awaited<ReturnType<typeof settingsOf>>) {
  const { role_arn = '', region = '', endpoint_url, access_key_id = '', secret_access_key = '', key_prefix } = settings;
  const common = {
    name: given.argument('name'),
    bucket_name: given.text('bucket-name') ?? '',
    ...(key_prefix === undefined ? {} : { key_prefix }),
    ...(given.flag('default') ? { is_default: true } : {}),
  };
  const provider = parseProvider(given.text('provider')) ?? 'S3';
  const isStatic = provider !== 'S3' || given.text('access-key-id') !== undefined;
  const mode = parseAuthMode(given.text('auth-mode')) ?? (isStatic ? 'STATIC_KEYS' : 'OIDC');
  if (mode === 'OIDC') {
    if (provider === 'S3') return { ...common, provider, auth_mode: mode, role_arn };
    throw usageFailure(`${provider} takes no role`, 'Give --auth-mode STATIC_KEYS and --access-key-id');
  }
  const keys = { ...common, auth_mode: mode, region, access_key_id, secret_access_key } as const;
  if (provider !== 'S3') return { ...keys, provider, endpoint_url: endpoint_url ?? '' };
  return { ...keys, provider, ...(endpoint_url === undefined ? {} : { endpoint_url }) };
}

export async function edit(context: Context, given: Given): Promise<void> {
  const body = givenOnly({
    name: given.text('name'),
    provider: parseProvider(given.text('provider')),
    auth_mode: parseAuthMode(given.text('auth-mode')),
    bucket_name: given.text('bucket-name'),
    ...(await settingsOf(context, given)),
    is_default: given.flag('default') ? true : given.flag('no-default') ? false : undefined,
  });
  if (Object.keys(body).length === 0)
    throw usageFailure('Nothing to change', 'strata bucket edit --help lists the options');
  const path = { id: given.argument('id') };
  await show(context, 'updateStorageBucket', { path, body }, (found) => bucketText(context, found));
}

/** The settings that a new bucket and a changed one have in common. */
async function settingsOf(context: Context, given: Given) {
  const key = given.flag('secret-access-key-stdin')
    ? (await context.readInput()).split(/\r?\n/, 1)[0]
    : context.environment['SERVICE_SECRET_ACCESS_KEY'];
  if (key !== undefined) context.terminal.hide(key);
  return givenOnly({
    key_prefix: given.text('key-prefix'),
    role_arn: given.text('role-arn'),
    region: given.text('region'),
    endpoint_url: given.text('endpoint-url'),
    access_key_id: given.text('access-key-id'),
    secret_access_key: key === '' ? undefined : key,
  });
}

export async function verify(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  if (context.terminal.isInteractive) context.terminal.say('Writing, reading and deleting an object...');
  await show(context, 'verifyStorageBucket', { path }, (found) => bucketText(context, found));
}

export async function errors(context: Context, given: Given): Promise<void> {
  const query = givenOnly({
    limit: given.number('limit'),
    offset: given.number('offset'),
    storage_bucket_id: given.text('storage-bucket-id'),
  });
  await show(context, 'listStorageBucketErrors', { query }, (found) =>
    tableText(context.terminal, ERROR_COLUMNS, found.errors),
  );
}

export async function remove(context: Context, given: Given): Promise<void> {
  const path = { id: given.argument('id') };
  const what = 'This forgets the bucket and ends the time in which repositories deleted from it can be restored';
  await confirm(context, given, what, 'Add --yes to do it; the objects in the bucket stay');
  await show(context, 'deleteStorageBucket', { path }, () => `Deleted ${path.id}\n`);
}

/** The parser has checked the choice. */
function parseProvider(text: string | undefined): StorageBucket['provider'] | undefined {
  return text as StorageBucket['provider'] | undefined;
}

function parseAuthMode(text: string | undefined): StorageBucket['auth_mode'] | undefined {
  return text as StorageBucket['auth_mode'] | undefined;
}
