/** Storage buckets: list, create, read, change, delete, verify, errors, what a cloud must trust. */
import type { z } from 'zod';
import type { WantedBucketSettings } from '../../../core/account/buckets/settings.ts';
import { roleSetup } from '../../../core/account/role-trust.ts';
import { parseUuid, type StorageBucketId } from '../../../core/kernel/ids.ts';
import {
  BUCKET_CHECK_SPAN_MS,
  BUCKET_CHECKS_OF_ACCOUNT_MAX,
  BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS,
} from '../../../core/kernel/limits.ts';
import type { BucketErrorRow } from '../../../core/ports/bucket-error-lists.ts';
import {
  type BucketCommandOrigin,
  type BucketViewer,
  changeBucket,
  createBucket,
  deleteBucket,
  type FoundBucket,
  findBucket,
  listBuckets,
} from '../../../core/use-cases/buckets/buckets.ts';
import { listBucketErrors } from '../../../core/use-cases/buckets/list-bucket-errors.ts';
import { verifyBucket } from '../../../core/use-cases/buckets/verify-bucket.ts';
import { type Principal, selectionOf } from '../../../core/use-cases/callers/principal.ts';
import { wantedSettings } from '../../front-door/bucket-settings.ts';
import { bucketErrorText } from '../../front-door/texts/bucket-errors.ts';
import { noContent, ok } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { ID_PARAMS } from '../schemas/params.ts';
import {
  BUCKET_ERRORS,
  BUCKET_ERRORS_QUERY,
  NEW_STORAGE_BUCKET,
  OFFERED_STORAGE_BUCKET,
  OIDC_SETUP,
  STORAGE_BUCKET,
  STORAGE_BUCKET_CHANGES,
  STORAGE_BUCKETS,
} from '../schemas/storage-buckets.ts';

const VERIFICATION_NOTES = `Writes, reads, lists and deletes objects below the prefix, one of 5 MiB in parts, and tries conditional writes, within ${BUCKET_CHECK_SPAN_MS / 1_000} seconds. 422 names the step that failed. An account may begin ${BUCKET_CHECKS_OF_ACCOUNT_MAX} verifications in ${BUCKET_CHECKS_OF_ACCOUNT_SPAN_MS / 60_000} minutes.`;

export const STORAGE_BUCKET_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'getOidcSetup',
    tag: 'Storage buckets',
    summary: 'Read what a cloud must trust',
    description:
      'Issuer, audience and subject of the tokens with which this service takes a role of the account, and a trust policy for that role.',
    method: 'GET',
    path: '/v1/storage-buckets/oidc-setup',
    grant: 'API_STORAGE',
    schemas: {},
    answers: { 200: OIDC_SETUP },
    problems: [],
    handle: getOidcSetup,
  }),
  accountRoute({
    operationId: 'listStorageBucketErrors',
    tag: 'Storage buckets',
    summary: 'List errors of storage buckets',
    description:
      'Failed verifications, and errors of repositories in buckets, newest first. The same error of the same repository is listed once in 15 minutes.',
    method: 'GET',
    path: '/v1/storage-buckets/errors',
    grant: 'API_STORAGE',
    schemas: { query: BUCKET_ERRORS_QUERY },
    answers: { 200: BUCKET_ERRORS },
    problems: [404],
    handle: getBucketErrors,
  }),
  accountRoute({
    operationId: 'createStorageBucket',
    tag: 'Storage buckets',
    summary: 'Create a storage bucket',
    description:
      'The bucket is pending verification. Settings of the other mode are ignored: with OIDC region, endpoint and keys. 403 if the plan has no storage of its own.',
    method: 'POST',
    path: '/v1/storage-buckets',
    grant: 'API_STORAGE',
    schemas: { body: NEW_STORAGE_BUCKET },
    offered: OFFERED_STORAGE_BUCKET,
    answers: { 201: STORAGE_BUCKET },
    problems: [409],
    handle: postStorageBucket,
  }),
  accountRoute({
    operationId: 'listStorageBuckets',
    tag: 'Storage buckets',
    summary: 'List storage buckets',
    description: 'Oldest first, without secret keys.',
    method: 'GET',
    path: '/v1/storage-buckets',
    grant: 'API_STORAGE',
    schemas: {},
    answers: { 200: STORAGE_BUCKETS },
    problems: [],
    handle: listStorageBuckets,
  }),
  accountRoute({
    operationId: 'getStorageBucket',
    tag: 'Storage buckets',
    summary: 'Read a storage bucket',
    method: 'GET',
    path: '/v1/storage-buckets/{id}',
    grant: 'API_STORAGE',
    schemas: { params: ID_PARAMS },
    answers: { 200: STORAGE_BUCKET },
    problems: [404],
    handle: getStorageBucket,
  }),
  accountRoute({
    operationId: 'updateStorageBucket',
    tag: 'Storage buckets',
    summary: 'Change a storage bucket',
    description:
      'Fields that are absent stay as they are. A change of provider, place or access returns the bucket to pending verification. While repositories depend on it, or deleted ones can come back to it, its provider, bucket, prefix and endpoint cannot change: 422 names them, as far as the token may see them. Nor can they while purges have still to remove layers from it, usually for an hour and up to ten minutes more: 422 says how much, and when to try again.',
    method: 'PUT',
    path: '/v1/storage-buckets/{id}',
    grant: 'API_STORAGE',
    schemas: { params: ID_PARAMS, body: STORAGE_BUCKET_CHANGES },
    answers: { 200: STORAGE_BUCKET },
    problems: [404, 409],
    standing: getStorageBucket,
    handle: putStorageBucket,
  }),
  accountRoute({
    operationId: 'deleteStorageBucket',
    tag: 'Storage buckets',
    summary: 'Delete a storage bucket',
    description:
      'Its objects stay where they are. 422 names the repositories that depend on it. It is also the answer while purges have still to remove layers from it, usually for an hour and up to ten minutes more, and says how much, and when to try again.',
    method: 'DELETE',
    path: '/v1/storage-buckets/{id}',
    grant: 'API_STORAGE',
    schemas: { params: ID_PARAMS },
    answers: { 204: null },
    problems: [404, 422],
    handle: removeStorageBucket,
  }),
  accountRoute({
    operationId: 'verifyStorageBucket',
    tag: 'Storage buckets',
    summary: 'Verify a storage bucket',
    description: VERIFICATION_NOTES,
    method: 'POST',
    path: '/v1/storage-buckets/{id}/verify',
    grant: 'API_STORAGE',
    schemas: { params: ID_PARAMS },
    answers: { 200: STORAGE_BUCKET },
    problems: [404, 409, 422, 429, 503],
    handle: postVerification,
  }),
];

type Identified = { readonly params: z.output<typeof ID_PARAMS> };

/** An id that is not a UUID gets 404, like any id of no bucket. */
const NOT_FOUND: Outcome = { refused: { code: 'storage-bucket-not-found' } };

async function postStorageBucket(
  call: AccountCall,
  { body }: { readonly body: z.output<typeof NEW_STORAGE_BUCKET> },
): Promise<Outcome> {
  const { name, is_default: isDefault } = body;
  const wanted = { name, isDefault, settings: wantedSettings(body) };
  const created = await createBucket(call.context, await bucketOrigin(call), wanted);
  return 'refused' in created ? created : ok(bucketObject(created), 201);
}

async function listStorageBuckets({ context, principal }: AccountCall): Promise<Outcome> {
  const buckets = await listBuckets(context, viewerOf(principal));
  const list: z.output<typeof STORAGE_BUCKETS> = { storage_buckets: buckets.map(bucketObject) };
  return ok(list);
}

async function getStorageBucket({ context, principal }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<StorageBucketId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await findBucket(context, viewerOf(principal), id);
  return 'refused' in found ? found : ok(bucketObject(found));
}

async function putStorageBucket(
  call: AccountCall,
  { params, body }: Identified & { readonly body: z.output<typeof STORAGE_BUCKET_CHANGES> },
): Promise<Outcome> {
  const id = parseUuid<StorageBucketId>(params.id);
  if (id === null) return NOT_FOUND;
  const { name, is_default: isDefault } = body;
  const changed = await changeBucket(call.context, await bucketOrigin(call), id, {
    ...(name === undefined ? {} : { name }),
    ...(isDefault === undefined ? {} : { isDefault }),
    settings: changedSettings(body),
  });
  return 'refused' in changed ? changed : ok(bucketObject(changed));
}

async function removeStorageBucket(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<StorageBucketId>(params.id);
  if (id === null) return NOT_FOUND;
  const deleted = await deleteBucket(call.context, await bucketOrigin(call), id);
  return 'refused' in deleted ? deleted : noContent();
}

async function postVerification(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<StorageBucketId>(params.id);
  if (id === null) return NOT_FOUND;
  const { context } = call;
  const verified = await verifyBucket(context, await bucketOrigin(call), id, context.addresses().baseUrl);
  return 'refused' in verified ? verified : ok(bucketObject(verified));
}

async function getBucketErrors(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof BUCKET_ERRORS_QUERY> },
): Promise<Outcome> {
  const { limit, offset, storage_bucket_id: bucket = null } = query;
  const wanted = { viewer: viewerOf(principal), bucket, seen: position, page: { offset, limit } };
  const listed = await listBucketErrors(context, wanted);
  if ('refused' in listed) return listed;
  const { items, total } = listed;
  const list: z.output<typeof BUCKET_ERRORS> = {
    errors: items.map(errorObject),
    pagination: { limit, offset, total },
  };
  return ok(list);
}

async function getOidcSetup({ context, principal }: AccountCall): Promise<Outcome> {
  const { issuer, audience, subject, trustPolicy } = roleSetup(context.addresses().baseUrl, principal.account);
  const setup: z.output<typeof OIDC_SETUP> = { issuer, audience, subject, trust_policy: { ...trustPolicy } };
  return ok(setup);
}

function viewerOf(principal: Principal): BucketViewer {
  return { account: principal.account, selection: selectionOf(principal) };
}

async function bucketOrigin({ origin, principal }: AccountCall): Promise<BucketCommandOrigin> {
  return { ...(await origin()), selection: selectionOf(principal) };
}

function changedSettings(body: z.output<typeof STORAGE_BUCKET_CHANGES>): Partial<WantedBucketSettings> {
  return {
    ...(body.provider === undefined ? {} : { provider: body.provider }),
    ...(body.auth_mode === undefined ? {} : { authMode: body.auth_mode }),
    ...(body.bucket_name === undefined ? {} : { bucketName: body.bucket_name }),
    ...(body.key_prefix === undefined ? {} : { keyPrefix: body.key_prefix }),
    ...(body.role_arn === undefined ? {} : { roleArn: body.role_arn }),
    ...(body.region === undefined ? {} : { region: body.region }),
    ...(body.endpoint_url === undefined ? {} : { endpointUrl: body.endpoint_url }),
    ...(body.access_key_id === undefined ? {} : { accessKeyId: body.access_key_id }),
    ...(body.secret_access_key === undefined ? {} : { secretAccessKey: body.secret_access_key }),
  };
}

/** A bucket in the form of docs/interface.md, without its secret key. */
function bucketObject(found: FoundBucket): z.output<typeof STORAGE_BUCKET> {
  const { bucket, settings, isDefault, conditionalWrites, repositories } = found;
  const { lastFailure } = bucket;
  return {
    id: bucket.id,
    name: bucket.name,
    provider: settings.provider,
    auth_mode: settings.authMode,
    bucket_name: settings.bucketName,
    key_prefix: settings.keyPrefix,
    role_arn: settings.roleArn,
    region: settings.region,
    endpoint_url: settings.endpointUrl,
    access_key_id: settings.accessKeyId,
    is_default: isDefault,
    status: bucket.status,
    last_validated_at: bucket.lastValidatedAt,
    last_error: lastFailure === null ? null : bucketErrorText(lastFailure),
    conditional_writes: conditionalWrites,
    repository_count: repositories.length,
    created_at: bucket.createdAt,
    updated_at: bucket.updatedAt,
  };
}

function errorObject(row: BucketErrorRow): z.output<typeof BUCKET_ERRORS>['errors'][number] {
  const { id, bucket, repository, operation, code, occurredAt } = row;
  return {
    id,
    storage_bucket_id: bucket,
    repository_id: repository,
    operation,
    code,
    message: bucketErrorText(row),
    occurred_at: occurredAt,
  };
}
