/**
 * Translates the errors of the AWS SDK, of sockets and of TLS into failures with stable codes.
 *
 * Invariants: no error of the SDK leaves this folder, since it holds the request with its signature. What the other
 * side says reaches a failure only as an error code, and as a text that only a check shows, cleaned.
 */
import type { BucketFaultCode, DeniedCode } from '../../core/kernel/bucket-fault.ts';
import { RoleRefused } from '../../core/ports/buckets.ts';
import { LayerStoreError, type LayerStoreErrorCode } from '../../core/ports/layer-store.ts';

/** Beside the codes of the port, what only this adapter acts on. */
export type FailureCode =
  | LayerStoreErrorCode
  | 'object-there-already'
  | 'conflict'
  | 'upload-gone'
  /** Another write of the key was under way when an upload in parts was to be completed. It must begin again. */
  | 'upload-conflict'
  | 'object-altered'
  /** The bytes that arrived are not those that were signed. */
  | 'body-altered'
  /** The bucket does not know the operation, or one of its headers. Of an upload in parts it is `multipart-missing`. */
  | 'unsupported'
  /** The bucket wants a checksum beside the signature, as one with Object Lock does. */
  | 'checksum-wanted'
  /** Another refusal that a repeat does not cure. */
  | 'refused';

export class S3Failure extends Error {
  override readonly name = 'S3Failure';
  readonly code: FailureCode;
  /** What the provider says about it; empty if it says nothing. */
  readonly said: string;
  constructor(code: FailureCode, message: string, said = '') {
    super(message);
    this.code = code;
    this.said = said;
  }
}

/** A failure that another attempt may cure, of a request that may be repeated. */
const PASSING: ReadonlySet<FailureCode> = new Set<FailureCode>([
  'layer-store-unavailable',
  'throttled',
  'timed-out',
  'unreachable',
  'conflict',
  'body-altered',
  // The SDK corrects its clock by the answer.
  'clock-skewed',
]);

export function isPassing(error: unknown): boolean {
  return error instanceof S3Failure && PASSING.has(error.code);
}

const BY_NAME: { readonly [name: string]: FailureCode } = {
  NoSuchBucket: 'bucket-missing',
  NoSuchKey: 'layer-not-found',
  NoSuchUpload: 'upload-gone',
  InvalidRange: 'range-not-satisfiable',
  PreconditionFailed: 'object-there-already',
  ConditionalRequestConflict: 'conflict',
  OperationAborted: 'conflict',
  AccessDenied: 'access-denied',
  AllAccessDisabled: 'access-denied',
  AccountProblem: 'access-denied',
  InvalidAccessKeyId: 'credentials-refused',
  // versitygw's name for it.
  XAdminUserNotFound: 'credentials-refused',
  SignatureDoesNotMatch: 'credentials-refused',
  ExpiredToken: 'credentials-refused',
  InvalidToken: 'credentials-refused',
  TokenRefreshRequired: 'credentials-refused',
  RequestTimeTooSkewed: 'clock-skewed',
  PermanentRedirect: 'wrong-region',
  TemporaryRedirect: 'wrong-region',
  AuthorizationHeaderMalformed: 'wrong-region',
  IllegalLocationConstraintException: 'wrong-region',
  SlowDown: 'throttled',
  Throttling: 'throttled',
  ThrottlingException: 'throttled',
  TooManyRequests: 'throttled',
  RequestLimitExceeded: 'throttled',
  RequestTimeout: 'timed-out',
  NotImplemented: 'unsupported',
  MethodNotAllowed: 'unsupported',
  MissingContentLength: 'unsupported',
  BadDigest: 'body-altered',
  XAmzContentSHA256Mismatch: 'body-altered',
  IncompleteBody: 'body-altered',
};

const BY_STATUS: { readonly [status: number]: FailureCode } = {
  301: 'wrong-region',
  302: 'wrong-region',
  303: 'wrong-region',
  307: 'wrong-region',
  308: 'wrong-region',
  401: 'access-denied',
  403: 'access-denied',
  405: 'unsupported',
  408: 'timed-out',
  409: 'conflict',
  411: 'unsupported',
  412: 'object-there-already',
  416: 'range-not-satisfiable',
  429: 'throttled',
  501: 'unsupported',
  507: 'layer-store-full',
};

/** The answer to HEAD has no body, and so no name. Another 404 without a known name does not tell of an object. */
const HEAD_BY_STATUS: { readonly [status: number]: FailureCode } = {
  // Credentials that have expired, or that nobody knows.
  400: 'credentials-refused',
  404: 'layer-not-found',
};

const TLS_CODES = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_CA)/;
const TIMEOUT_CODES = new Set(['ETIMEDOUT', 'ESOCKETTIMEDOUT', 'timed-out']);
/** The codes of core/kernel/target-fault.ts, and those of failed connections that the checked dialer reports. */
const BY_CODE: { readonly [code: string]: FailureCode } = {
  'certificate-invalid': 'certificate-invalid',
  'url-malformed': 'target-refused',
  'url-too-long': 'target-refused',
  'url-not-https': 'target-refused',
  'url-with-credentials': 'target-refused',
  'own-host': 'target-refused',
  'address-not-public': 'target-refused',
  'peer-not-checked': 'target-refused',
};

/** The cloud's token service refuses in these words. */
const FROM_ROLE: { readonly [Code in BucketFaultCode]: FailureCode } = {
  'bucket-missing': 'bucket-missing',
  'access-denied': 'access-denied',
  'get-denied': 'get-denied',
  'head-denied': 'head-denied',
  'put-denied': 'put-denied',
  'delete-denied': 'delete-denied',
  'list-denied': 'list-denied',
  'credentials-invalid': 'credentials-invalid',
  'credentials-refused': 'credentials-refused',
  'object-missing': 'layer-not-found',
  'object-altered': 'object-altered',
  'multipart-missing': 'multipart-missing',
  'wrong-region': 'wrong-region',
  'clock-skewed': 'clock-skewed',
  throttled: 'throttled',
  'timed-out': 'timed-out',
  'certificate-invalid': 'certificate-invalid',
  'target-refused': 'target-refused',
  unreachable: 'unreachable',
  'not-s3': 'not-s3',
  failed: 'layer-store-unavailable',
};

const CODE = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** Returns what became of a request. The operation is the name of S3's API. */
export function failureOf(operation: string, error: unknown): S3Failure {
  if (error instanceof S3Failure) return error;
  if (!(error instanceof Error)) return new S3Failure('layer-store-unavailable', `${operation} failed`);
  const status = statusOf(error);
  if (status === null) return unanswered(operation, error);
  const ofHead = operation.startsWith('Head') ? HEAD_BY_STATUS[status] : undefined;
  const named = BY_NAME[error.name] ?? ofHead ?? BY_STATUS[status];
  const known = ofOperation(operation, error.name, named);
  const name = CODE.test(error.name) ? ` (${error.name})` : '';
  const region = known === 'wrong-region' ? regionIn(error) : '';
  const message = `The bucket answered ${operation} with ${status}${name}${region}`;
  if (known !== undefined) return new S3Failure(known, message, error.message);
  if (WANTS_CHECKSUM.test(error.message)) return new S3Failure('checksum-wanted', message, error.message);
  if (status >= 500) return new S3Failure('layer-store-unavailable', message, error.message);
  if (status < 300) return new S3Failure('not-s3', `The answer to ${operation} is not S3's`);
  return new S3Failure(isS3Error(error) ? 'refused' : 'not-s3', message, error.message);
}

/** What some failures are of one operation. */
function ofOperation(operation: string, name: string, code: FailureCode | undefined): FailureCode | undefined {
  if (code === 'conflict' && operation === 'CompleteMultipartUpload') return 'upload-conflict';
  return code === 'access-denied' && !OF_WHOLE_ACCOUNT.has(name) ? (DENIED[operation] ?? code) : code;
}

const OF_WHOLE_ACCOUNT: ReadonlySet<string> = new Set(['AllAccessDisabled', 'AccountProblem']);

const DENIED: { readonly [operation: string]: DeniedCode } = {
  GetObject: 'get-denied',
  HeadObject: 'head-denied',
  PutObject: 'put-denied',
  CreateMultipartUpload: 'put-denied',
  UploadPart: 'put-denied',
  CompleteMultipartUpload: 'put-denied',
  DeleteObject: 'delete-denied',
  AbortMultipartUpload: 'delete-denied',
  ListObjectsV2: 'list-denied',
  ListMultipartUploads: 'list-denied',
  HeadBucket: 'list-denied',
};

const DENIALS: ReadonlySet<FailureCode> = new Set<FailureCode>(['access-denied', ...Object.values(DENIED)]);

export function isDenied(error: unknown): boolean {
  return error instanceof S3Failure && DENIALS.has(error.code);
}

/** Amazon names the right region in a header, or in the body of its answer. */
function regionIn(error: Error): string {
  const header = headersOf('$response' in error ? error.$response : null)['x-amz-bucket-region'];
  const named = header ?? ('Region' in error ? error.Region : undefined);
  return typeof named === 'string' && REGION.test(named) ? `, since it is in the region ${named}` : '';
}

/** The form of a region's name. */
export const REGION = /^[a-z0-9-]{1,50}$/i;

/** Returns the headers of an answer in the SDK's form, with names in lower case; empty for anything else. */
export function headersOf(response: unknown): Readonly<Record<string, string>> {
  if (typeof response !== 'object' || response === null || !('headers' in response)) return {};
  const { headers } = response;
  if (typeof headers !== 'object' || headers === null) return {};
  return Object.fromEntries(
    Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/**
 * Amazon's words for a put into a bucket with Object Lock, whose name is no more than `InvalidRequest`: "Content-MD5 OR
 * x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters".
 */
const WANTS_CHECKSUM = /\bx-amz-checksum-.*\brequired\b/i;

/** An error without an answer: of the connection, of TLS, of the credentials, or of the answer's form. */
function unanswered(operation: string, error: Error): S3Failure {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (error instanceof RoleRefused) {
    return new S3Failure(FROM_ROLE[error.code], `There are no credentials for ${operation}`, error.message);
  }
  const known = BY_CODE[code];
  const detail = CODE.test(code) ? ` (${code})` : '';
  if (known !== undefined) return new S3Failure(known, `The bucket's address cannot be used${detail}`);
  if (TLS_CODES.test(code)) {
    return new S3Failure('certificate-invalid', `The certificate of the bucket's server is not valid${detail}`);
  }
  // The SDK also gives a connection that broke the name of a timeout.
  if (TIMEOUT_CODES.has(code) || (code === '' && /^(Timeout|Abort)Error$/.test(error.name))) {
    return new S3Failure('timed-out', `The bucket took too long to answer ${operation}`);
  }
  if (code.startsWith('HPE_')) return new S3Failure('not-s3', `The answer to ${operation} is not HTTP${detail}`);
  return new S3Failure('unreachable', `The connection to the bucket failed at ${operation}${detail}`);
}

function statusOf(error: Error): number | null {
  const metadata: unknown = '$metadata' in error ? error.$metadata : undefined;
  if (typeof metadata !== 'object' || metadata === null || !('httpStatusCode' in metadata)) return null;
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : null;
}

/** S3 names each error in the body of its answer; the SDK copies the name to `Code`. */
function isS3Error(error: Error): boolean {
  return 'Code' in error && typeof error.Code === 'string';
}

/** What the caller of a layer store gets. It has no cause: the SDK's errors hold requests. */
export function storeError(failure: S3Failure, what: string): LayerStoreError {
  return new LayerStoreError(portCode(failure.code), `${failure.message}: ${what}`);
}

function portCode(code: FailureCode): LayerStoreErrorCode {
  switch (code) {
    case 'object-there-already':
    case 'conflict':
    case 'upload-gone':
    case 'upload-conflict':
    case 'object-altered':
    case 'body-altered':
      return 'layer-store-unavailable';
    case 'unsupported':
    case 'checksum-wanted':
    case 'refused':
      return 'layer-store-refused';
    case 'layer-not-found':
    case 'layer-store-full':
    case 'layer-store-unavailable':
    case 'layer-store-refused':
    case 'multipart-missing':
    case 'range-not-satisfiable':
    case 'bucket-missing':
    case 'access-denied':
    case 'get-denied':
    case 'head-denied':
    case 'put-denied':
    case 'delete-denied':
    case 'list-denied':
    case 'credentials-invalid':
    case 'credentials-refused':
    case 'wrong-region':
    case 'clock-skewed':
    case 'throttled':
    case 'timed-out':
    case 'certificate-invalid':
    case 'target-refused':
    case 'unreachable':
    case 'not-s3':
      return code;
  }
}
