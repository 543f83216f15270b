/** The words of the pages of storage buckets, and the mark of a bucket's status. */
import type { BucketProvider } from '../../../core/account/buckets/settings.ts';
import type { BucketStatus } from '../../../core/account/buckets/state.ts';
import type { ShownBucketSettings } from '../../../core/use-cases/buckets/buckets.ts';
import { type Html, html } from '../layout/html.ts';

export const PROVIDERS: { readonly [Provider in BucketProvider]: string } = {
  S3: 'Amazon S3',
  R2: 'Cloudflare R2',
  MINIO: 'MinIO',
};

const STATUSES: { readonly [Status in BucketStatus]: readonly [text: string, colour: string] } = {
  PENDING_VERIFICATION: ['not verified', 'warn'],
  VERIFIED: ['verified', 'good'],
  FAILED: ['failed', 'bad'],
};

export function statusMark(status: BucketStatus): Html {
  const [text, colour] = STATUSES[status];
  return html`<span class="mark ${colour}">${text}</span>`;
}

/** Returns bucket and prefix as people write them. */
export function placeText({ bucketName, keyPrefix }: Pick<ShownBucketSettings, 'bucketName' | 'keyPrefix'>): string {
  return keyPrefix === '' ? bucketName : `${bucketName}/${keyPrefix}`;
}
