/**
 * The AWS SDK's client for one bucket, with every bound that the SDK leaves open.
 *
 * Invariants: nothing but the options decides where a request goes and with which credentials, no environment
 * variable and no file of the machine's owner; the SDK repeats nothing, since only the caller knows what may be
 * repeated; it follows no redirect and logs nothing.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import { S3_CONNECT_SPAN_MS, S3_CONNECTIONS_MAX } from '../../core/kernel/limits.ts';
import { createBoundedHandler, type S3Agents, type S3Spans } from './bounded-handler.ts';

/** From the start of a request to the end of its answer; for a read of a layer, to the start of its bytes. */
export const S3_ANSWER_SPAN_MS = 60_000;
/** How long a bucket may send nothing in the middle of a layer, and how long its reader may take nothing. */
export const S3_STALLED_SPAN_MS = 30_000;

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** When they are fetched again; absent for keys that do not expire. */
  readonly expiration?: Date;
}

export interface S3ClientOptions {
  /** Null: Amazon's endpoint of the region. */
  readonly endpointUrl: string | null;
  readonly region: string | (() => Promise<string>);
  /** Whether the bucket's name stands in the path, as most servers want it, and not in the host's name. */
  readonly pathStyle: boolean;
  readonly credentials: S3Credentials | (() => Promise<S3Credentials>);
  /** Default: any address, http and https. */
  readonly agents?: S3Agents;
  readonly spans?: Partial<S3Spans>;
  /** Returns the header `traceparent` of a request that is sent now; null or absent: it has none. */
  readonly traceparent?: () => string | null;
}

const RETRY_MS = 100;

export function spansOf(options: Pick<S3ClientOptions, 'spans'>): S3Spans {
  return {
    connectMs: S3_CONNECT_SPAN_MS,
    answerMs: S3_ANSWER_SPAN_MS,
    stalledMs: S3_STALLED_SPAN_MS,
    retryMs: RETRY_MS,
    ...options.spans,
  };
}

export function createS3Client(options: S3ClientOptions): S3Client {
  const { credentials } = options;
  const config: S3ClientConfig = {
    region: options.region,
    credentials: typeof credentials === 'function' ? credentials : { ...credentials },
    forcePathStyle: options.pathStyle,
    requestHandler: createBoundedHandler({
      agents: options.agents ?? openAgents(),
      spans: spansOf(options),
      ...(options.traceparent === undefined ? {} : { traceparent: options.traceparent }),
    }),
    maxAttempts: 1,
    // The caller sends SHA-256 sums of its own; a checksum in a trailer is more than many servers understand.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // What the SDK else looks for in the environment and in ~/.aws.
    ...(options.endpointUrl === null ? {} : { endpoint: options.endpointUrl }),
    defaultsMode: 'standard',
    retryMode: 'standard',
    useArnRegion: false,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    disableS3ExpressSessionAuth: true,
    disableMultiregionAccessPoints: true,
    ignoreConfiguredEndpointUrls: true,
    followRegionRedirects: false,
    authSchemePreference: ['sigv4'],
    userAgentAppId: 'strata',
    // A part is in memory, so nothing is gained by asking before it is sent.
    expectContinueHeader: false,
  };
  return new S3Client(config);
}

/** Agents for a bucket whose address the operator chose. */
function openAgents(): S3Agents {
  const options = { keepAlive: true, maxSockets: S3_CONNECTIONS_MAX, scheduling: 'lifo' } as const;
  return { http: new HttpAgent(options), https: new HttpsAgent(options) };
}
