/** A storage bucket's settings as bodies of the API and forms of the website name them, and as use cases take them. */
import type { BucketAuthMode, BucketProvider, WantedBucketSettings } from '../../core/account/buckets/settings.ts';

interface SentBucketSettings {
  readonly provider: BucketProvider;
  readonly auth_mode: BucketAuthMode;
  readonly bucket_name: string;
  readonly key_prefix: string;
  readonly role_arn: string | null;
  readonly region: string | null;
  readonly endpoint_url: string | null;
  readonly access_key_id: string | null;
  readonly secret_access_key: string | null;
}

export function wantedSettings(sent: SentBucketSettings): WantedBucketSettings {
  return {
    provider: sent.provider,
    authMode: sent.auth_mode,
    bucketName: sent.bucket_name,
    keyPrefix: sent.key_prefix,
    roleArn: sent.role_arn,
    region: sent.region,
    endpointUrl: sent.endpoint_url,
    accessKeyId: sent.access_key_id,
    secretAccessKey: sent.secret_access_key,
  };
}
