/** What can go wrong with a bucket of a user. The codes stand in events. */

/** The steps of a check, in their order. A check ends at the first that fails. */
export type BucketStep =
  | 'credentials'
  | 'region'
  | 'put'
  | 'head'
  | 'get'
  | 'list'
  | 'conditional-put'
  | 'multipart'
  | 'range'
  | 'delete';

/** Stable codes: they stand in events and in the list of a bucket's errors. */
export type BucketFaultCode = BucketOutageCode | 'object-missing' | 'object-altered' | 'multipart-missing' | 'failed';

/** What only a bucket can report. */
export type BucketOutageCode =
  | 'bucket-missing'
  | 'access-denied'
  | DeniedCode
  | 'credentials-invalid'
  | 'credentials-refused'
  | 'wrong-region'
  | 'clock-skewed'
  | 'throttled'
  | 'timed-out'
  | 'certificate-invalid'
  | 'target-refused'
  | 'unreachable'
  | 'not-s3';

/** It denies one operation. `access-denied` is every other denial. */
export type DeniedCode = 'get-denied' | 'head-denied' | 'put-denied' | 'delete-denied' | 'list-denied';

/** What the service did with a bucket for its repositories. */
export type BucketOperation = 'push' | 'read' | 'maintenance';
