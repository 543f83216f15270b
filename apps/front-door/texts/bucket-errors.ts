/**
 * The one table from the code of a storage bucket's fault to the message that its owner sees.
 *
 * Invariants: no message repeats what a provider said.
 */
import type { BucketFaultCode } from '../../../core/kernel/bucket-fault.ts';
import type { BucketErrorRow } from '../../../core/ports/bucket-error-lists.ts';

const MESSAGES: { readonly [Code in BucketFaultCode]: string } = {
  'bucket-missing': 'The bucket does not exist',
  'access-denied': 'The provider denied access',
  'get-denied': 'The provider denied reading an object (s3:GetObject)',
  'head-denied': 'The provider denied looking for an object (s3:GetObject, and s3:ListBucket for one that is absent)',
  'put-denied': 'The provider denied storing an object (s3:PutObject)',
  'delete-denied': 'The provider denied deleting an object (s3:DeleteObject)',
  'list-denied': 'The provider denied listing objects (s3:ListBucket)',
  'credentials-invalid': 'The keys or the role are not of a form that the provider takes',
  'credentials-refused': 'The provider refused the keys or the role',
  'object-missing': 'An object is missing in the bucket',
  'object-altered': 'An object in the bucket was altered',
  'multipart-missing': 'The provider takes no uploads in parts, which layers above 8 MiB need',
  'wrong-region': 'The bucket is in another region',
  'clock-skewed': 'The clocks of this service and of the provider differ too much',
  throttled: 'The provider takes no more requests for now',
  'timed-out': 'The provider did not answer in time',
  'certificate-invalid': "The endpoint's certificate is not valid",
  'target-refused': 'The endpoint leads to an address that is not allowed',
  unreachable: 'The endpoint could not be reached',
  'not-s3': 'The endpoint does not speak the protocol of S3',
  failed: 'The request failed',
};

/** Names the step for a failed verification. */
export function bucketErrorText({ step, code }: Pick<BucketErrorRow, 'step' | 'code'>): string {
  return step === null ? MESSAGES[code] : `Step ${step}: ${MESSAGES[code]}`;
}
