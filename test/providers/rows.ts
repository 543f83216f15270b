/**
 * What other providers of S3 do otherwise than Amazon, as far as somebody says so: a row for each.
 *
 * Invariants: every fact names its source. What no source says is UNKNOWN, and nothing here is a guess.
 */

/** What a provider answers in place of what S3 does. */
export interface Refused {
  readonly status: number;
  readonly code: string;
  /** Empty where no source quotes it. */
  readonly message: string;
}

export interface Fact<Behaviour> {
  readonly is: Behaviour;
  readonly source: string;
}

const UNKNOWN = null;
type Known<Behaviour> = Fact<Behaviour> | typeof UNKNOWN;

export interface Facts {
  /** Addresses with the bucket's name in the path. */
  readonly address: Known<'taken' | Refused>;
  /** PutObject, GetObject, also of a range, HeadObject, DeleteObject, HeadBucket and ListObjectsV2. */
  readonly objects: Known<'kept'>;
  /** Uploads in parts, and the answer to one whose parts before the last have different sizes. */
  readonly parts: Known<'of any size' | Refused>;
  /** `If-None-Match: *` of a PutObject. */
  readonly condition: Known<'kept' | 'ignored' | Refused>;
  /** Conditional puts of a new key at the same moment; the answer to those that lose. */
  readonly race: Known<'one wins' | 'several win' | Refused>;
  /** `If-None-Match: *` of a CompleteMultipartUpload. */
  readonly completion: Known<'kept' | 'ignored'>;
  /** A body whose SHA-256 is not the signed `x-amz-content-sha256`. */
  readonly hashes: Known<'taken' | Refused>;
  /** The headers `x-amz-checksum-…`, and bodies in chunks with a checksum behind them. The service sends none. */
  readonly checksums: Known<Refused>;
}

export interface Provider {
  readonly name: string;
  /** A host of it, by which the service knows how to address its buckets; absent: any. */
  readonly host?: string;
  readonly facts: Facts;
}

const OTHER_HASH: Refused = {
  status: 400,
  code: 'XAmzContentSHA256Mismatch',
  message: "The provided 'x-amz-content-sha256' header does not match what was computed.",
};
const NO_CONDITIONS: Refused = {
  status: 501,
  code: 'NotImplemented',
  message: 'A header you provided implies functionality that is not implemented',
};

const AWS_CONDITIONS = 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-requests.html';
const R2_API = 'https://developers.cloudflare.com/r2/api/s3/api/';
const R2_CONDITIONS = 'https://developers.cloudflare.com/r2/api/s3/conditional-operations/';
const MINIO_API = 'https://min.io/docs/minio/linux/reference/s3-api-compatibility.html';
const CEPH_API = 'https://docs.ceph.com/en/tentacle/radosgw/s3/';
const B2_API = 'https://backblaze.com/docs/cloud-storage-call-the-s3-compatible-api';
const GOOGLE_METHODS = 'https://docs.cloud.google.com/storage/docs/xml-api/reference-methods';
const WASABI_API = 'https://docs.wasabi.com/docs/rest-api-introduction';
const GARAGE_API = 'https://garagehq.deuxfleurs.fr/reference_manual/s3_compatibility.html';
/** Neither the put of an object nor the completion of an upload reads the header. */
const GARAGE_PUT =
  'https://github.com/deuxfleurs-org/garage/blob/0650a43cf14e7e52121a553130a9ea6c92b7bd4a/src/api/s3/put.rs';
const SEAWEED_API = 'https://github.com/seaweedfs/seaweedfs/wiki/Amazon-S3-API';
const SEAWEED_ADDRESSES = 'https://stowage.dev/docs/self-host/backends/seaweedfs';
/** The answer of 3.96 to a put of a key that is there, and the change that brought conditions. */
const SEAWEED_IGNORED = 'https://github.com/seaweedfs/seaweedfs/issues/7153';
const OSS_API = 'https://www.alibabacloud.com/help/en/oss/developer-reference/compatibility-with-amazon-s3';

export const PROVIDERS: readonly Provider[] = [
  {
    name: 'Amazon S3',
    facts: {
      address: { is: 'taken', source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html' },
      objects: { is: 'kept', source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html' },
      parts: {
        is: 'of any size',
        source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html',
      },
      condition: { is: 'kept', source: AWS_CONDITIONS },
      race: {
        is: { status: 409, code: 'ConditionalRequestConflict', message: '' },
        source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html',
      },
      completion: { is: 'kept', source: AWS_CONDITIONS },
      // It quotes the answer of Amazon to such a body.
      hashes: { is: OTHER_HASH, source: 'https://github.com/basho/riak_cs/issues/1059' },
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Cloudflare R2',
    facts: {
      // A log of an SDK with `ForcePathStyle`.
      address: { is: 'taken', source: 'https://github.com/home-assistant/home-assistant.io/issues/43416' },
      objects: { is: 'kept', source: R2_API },
      parts: {
        is: { status: 400, code: 'InvalidPart', message: 'All non-trailing parts must have the same length.' },
        source: 'https://github.com/apache/opendal/issues/2904',
      },
      condition: { is: 'kept', source: R2_CONDITIONS },
      // Asked there, and not answered: https://github.com/cloudflare/cloudflare-docs/issues/32793
      race: UNKNOWN,
      completion: { is: 'kept', source: R2_CONDITIONS },
      hashes: UNKNOWN,
      checksums: UNKNOWN,
    },
  },
  {
    name: 'MinIO',
    facts: {
      address: { is: 'taken', source: 'https://min.io/docs/minio/javascript-client-api-reference' },
      objects: { is: 'kept', source: MINIO_API },
      parts: { is: 'of any size', source: MINIO_API },
      condition: { is: 'kept', source: 'https://github.com/minio/minio/pull/16551' },
      race: { is: 'one wins', source: 'https://github.com/minio/minio/pull/19713' },
      completion: { is: 'kept', source: 'https://github.com/minio/minio/pull/19713' },
      hashes: { is: OTHER_HASH, source: 'https://github.com/minio/minio/blob/master/cmd/api-errors.go' },
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Ceph RGW 20.2.1',
    facts: {
      // A log of requests to a gateway.
      address: { is: 'taken', source: 'https://github.com/minio/mc/issues/3723' },
      objects: { is: 'kept', source: CEPH_API },
      parts: { is: 'of any size', source: CEPH_API },
      // An older gateway was seen to ignore it: https://github.com/open-rails/contentkit/releases/tag/v0.58.1
      condition: { is: 'kept', source: 'https://github.com/ceph/s3-tests/issues/218' },
      race: {
        is: 'one wins',
        source:
          'https://github.com/reisepass/zeropg/blob/166c5235f7291760bd35d21879d21d8eeef8bf13/docs/STORAGE-BACKENDS.md',
      },
      completion: { is: 'kept', source: 'https://github.com/ceph/ceph/pull/64830' },
      hashes: {
        is: { ...OTHER_HASH, message: '' },
        source: 'https://github.com/ceph/ceph/blob/main/src/rgw/rgw_common.cc',
      },
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Backblaze B2',
    facts: {
      address: { is: 'taken', source: B2_API },
      objects: { is: 'kept', source: B2_API },
      parts: { is: 'of any size', source: B2_API },
      condition: {
        is: NO_CONDITIONS,
        source: 'https://github.com/sathinduga/obsidian-s3-sync-and-backup/issues/78',
      },
      race: UNKNOWN,
      completion: UNKNOWN,
      hashes: UNKNOWN,
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Google Cloud Storage, XML API',
    facts: {
      address: { is: 'taken', source: 'https://docs.cloud.google.com/storage/docs/request-endpoints' },
      objects: { is: 'kept', source: GOOGLE_METHODS },
      parts: { is: 'of any size', source: 'https://docs.cloud.google.com/storage/docs/multipart-uploads' },
      // Its own header is `x-goog-if-generation-match: 0`. If-None-Match is documented for reads alone:
      // https://docs.cloud.google.com/storage/docs/request-preconditions
      condition: UNKNOWN,
      race: UNKNOWN,
      completion: UNKNOWN,
      hashes: UNKNOWN,
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Wasabi',
    facts: {
      address: { is: 'taken', source: WASABI_API },
      objects: { is: 'kept', source: 'https://docs.wasabi.com/apidocs/wasabi-api' },
      parts: { is: 'of any size', source: 'https://docs.wasabi.com/apidocs/wasabi-api' },
      condition: UNKNOWN,
      race: UNKNOWN,
      completion: UNKNOWN,
      // The words of the answer; status and code are Amazon's, as the page of the API says of its errors.
      hashes: { is: OTHER_HASH, source: 'https://github.com/robinrodricks/FluentStorage/issues/121' },
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Garage',
    facts: {
      address: { is: 'taken', source: GARAGE_API },
      objects: { is: 'kept', source: GARAGE_API },
      parts: { is: 'of any size', source: GARAGE_API },
      condition: { is: 'ignored', source: GARAGE_PUT },
      race: UNKNOWN,
      completion: { is: 'ignored', source: GARAGE_PUT },
      hashes: {
        is: {
          status: 400,
          code: 'InvalidDigest',
          message: 'SHA256 checksum verification failed (from x-amz-content-sha256)',
        },
        source:
          'https://github.com/deuxfleurs-org/garage/blob/294cb9940943d7febc1029ed44145daf57f914d0/src/api/s3/checksum.rs',
      },
      checksums: UNKNOWN,
    },
  },
  {
    name: 'SeaweedFS 3.96',
    facts: {
      address: { is: 'taken', source: SEAWEED_ADDRESSES },
      objects: { is: 'kept', source: SEAWEED_API },
      parts: { is: 'of any size', source: SEAWEED_API },
      condition: { is: 'ignored', source: SEAWEED_IGNORED },
      race: UNKNOWN,
      completion: { is: 'ignored', source: SEAWEED_IGNORED },
      hashes: {
        is: 'taken',
        source:
          'https://github.com/seaweedfs/seaweedfs/blob/0fbdedecc741ca71455b7ab8058cddd54939c82f/weed/s3api/s3api_put_object_helper.go',
      },
      checksums: UNKNOWN,
    },
  },
  {
    name: 'SeaweedFS 4.16',
    facts: {
      address: { is: 'taken', source: SEAWEED_ADDRESSES },
      objects: { is: 'kept', source: SEAWEED_API },
      parts: { is: 'of any size', source: SEAWEED_API },
      condition: { is: 'kept', source: 'https://github.com/seaweedfs/seaweedfs/pull/8801' },
      race: { is: 'several win', source: 'https://github.com/seaweedfs/seaweedfs/issues/8800' },
      completion: { is: 'kept', source: 'https://github.com/seaweedfs/seaweedfs/pull/8801' },
      hashes: UNKNOWN,
      checksums: UNKNOWN,
    },
  },
  {
    name: 'Alibaba Cloud OSS',
    host: 'oss-cn-hangzhou.aliyuncs.com',
    facts: {
      // https://help.aliyun.com/en/oss/developer-reference/overview-24 says that only names in the host are accepted.
      address: {
        is: {
          status: 403,
          code: 'SecondLevelDomainForbidden',
          message: 'Please use virtual hosted style to access.',
        },
        source: 'https://github.com/peak/s5cmd/issues/518',
      },
      objects: { is: 'kept', source: OSS_API },
      parts: { is: 'of any size', source: OSS_API },
      condition: { is: NO_CONDITIONS, source: 'https://github.com/tobi/walgit/issues/67' },
      race: UNKNOWN,
      completion: UNKNOWN,
      hashes: UNKNOWN,
      checksums: {
        is: {
          status: 400,
          code: 'InvalidArgument',
          message: 'aws-chunked encoding is not supported with the specified x-amz-content-sha256 value.',
        },
        source: 'https://www.alibabacloud.com/help/en/oss/user-guide/0017-00000804',
      },
    },
  },
  {
    name: 'Tencent Cloud COS',
    host: 'cos.ap-guangzhou.myqcloud.com',
    facts: {
      // Buckets from before 2024 are said to take both.
      address: {
        is: {
          status: 403,
          code: 'PathStyleDomainForbidden',
          message: 'The bucket you are attempting to access must be addressed using COS virtual-styled domain.',
        },
        source: 'https://github.com/gobackup/gobackup/issues/268',
      },
      objects: { is: 'kept', source: 'https://www.tencentcloud.com/document/product/436/10687' },
      parts: UNKNOWN,
      // It has `x-cos-forbid-overwrite`; of the header of S3 nothing was found.
      condition: UNKNOWN,
      race: UNKNOWN,
      completion: UNKNOWN,
      hashes: UNKNOWN,
      checksums: {
        is: {
          status: 400,
          code: 'NotImplemented',
          message: 'Aws MultiChunkedEncoding STREAMING-UNSIGNED-PAYLOAD-TRAILER is not supported.',
        },
        source: 'https://github.com/multica-ai/multica/pull/6261',
      },
    },
  },
];
