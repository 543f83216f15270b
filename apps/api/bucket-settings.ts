/** A storage bucket's settings on the wire, as use cases take them: for REST, and for the forms of the website. */
import type { z } from 'zod';
import type { WantedBucketSettings } from '../../core/account/buckets/settings.ts';
import type { NEW_STORAGE_BUCKET } from './schemas/storage-buckets.ts';

export function wantedSettings(body: z.output<typeof NEW_STORAGE_BUCKET>): WantedBucketSettings {
  return {
    provider: body.provider,
    authMode: body.auth_mode,
    bucketName: body.bucket_name,
    keyPrefix: body.key_prefix,
    roleArn: body.role_arn,
    region: body.region,
    endpointUrl: body.endpoint_url,
    accessKeyId: body.access_key_id,
    secretAccessKey: body.secret_access_key,
  };
}
