/**
 * One question to a cloud's token service: credentials of a role, for an identity token (AssumeRoleWithWebIdentity).
 *
 * Invariants: the SDK gets every setting here. It reads no environment, no file of the machine's user and no
 * metadata service, so that the service never acts with credentials of its host. Every attempt has a token of its own.
 */
import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { AssumeRoleWithWebIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import pRetry from 'p-retry';
import { identitySubject, isRoleArn, ROLE_AUDIENCE } from '../../core/account/role-trust.ts';
import { timestamp } from '../../core/kernel/ids.ts';
import { type RoleAccess, type RoleCredentials, RoleRefused } from '../../core/ports/buckets.ts';
import type { IdentityIssuer } from '../../core/ports/identity-issuer.ts';
import { isRetried, refusalOf } from './failures.ts';

/**
 * How long the credentials of a role in a user's cloud hold: every role allows an hour. Internal: it is a figure in
 * each request for credentials.
 */
export const ROLE_SESSION_SECONDS = 3_600;
/** The time for one request to a cloud's token service, and for all of them when it must be asked again. */
export const ROLE_REQUEST_SPAN_MS = 10_000;
export const ROLE_REQUESTS_SPAN_MS = 25_000;
/** Connections to a cloud's token service. Internal: further requests wait. */
export const ROLE_CONNECTIONS_MAX = 16;

export interface TokenServiceOptions {
  readonly identity: Pick<IdentityIssuer, 'issue'>;
  /** The address of the token service; null: Amazon's in the region of the role's partition. */
  readonly endpoint: string | null;
  /**
   * In milliseconds: the bounds below by default, and about the first pause between two requests.
   */
  readonly spans?: { readonly request: number; readonly requests: number; readonly pause: number };
}

export interface TokenService {
  /** Rejects with a `RoleRefused` unless it is this service that fails. */
  assumeRole(access: RoleAccess): Promise<RoleCredentials>;
  /** Closes idle connections. */
  close(): void;
}

/** For each partition, one region that every account can use: the credentials hold in all of its regions. */
const AMAZON: Readonly<Record<string, readonly [region: string, endpoint: string]>> = {
  aws: ['us-east-1', 'https://sts.us-east-1.amazonaws.com'],
  'aws-us-gov': ['us-gov-west-1', 'https://sts.us-gov-west-1.amazonaws.com'],
  'aws-cn': ['cn-north-1', 'https://sts.cn-north-1.amazonaws.com.cn'],
};
/** How often a question is asked again. */
const RETRIES_MAX = 2;
const SPANS = { request: ROLE_REQUEST_SPAN_MS, requests: ROLE_REQUESTS_SPAN_MS, pause: 200 };

export function createTokenService({ identity, endpoint, spans = SPANS }: TokenServiceOptions): TokenService {
  const handler = createHandler(spans.request);
  const clients = new Map<string, STSClient>();

  function clientFor(partition: string): STSClient | null {
    const amazon = AMAZON[partition];
    if (amazon === undefined) return null;
    const client = clients.get(partition) ?? createClient(handler, amazon[0], endpoint ?? amazon[1]);
    clients.set(partition, client);
    return client;
  }

  async function ask(client: STSClient, { account, roleArn }: RoleAccess, all: AbortSignal): Promise<RoleCredentials> {
    const token = await identity.issue({ audience: ROLE_AUDIENCE, subject: identitySubject(account) });
    const command = new AssumeRoleWithWebIdentityCommand({
      RoleArn: roleArn,
      // What the owner of the role reads in the log of their cloud.
      RoleSessionName: `strata-${account}`,
      WebIdentityToken: token,
      DurationSeconds: ROLE_SESSION_SECONDS,
    });
    const abortSignal = AbortSignal.any([all, AbortSignal.timeout(spans.request)]);
    try {
      return credentialsOf((await client.send(command, { abortSignal })).Credentials);
    } catch (error) {
      throw error instanceof RoleRefused ? error : refusalOf(error, token);
    }
  }

  return {
    async assumeRole(access) {
      const client = isRoleArn(access.roleArn) ? clientFor(access.roleArn.split(':')[1] ?? '') : null;
      if (client === null) throw new RoleRefused('credentials-refused', 'The role is not named as Amazon names roles');
      const all = AbortSignal.timeout(spans.requests);
      return pRetry(() => ask(client, access, all), {
        retries: RETRIES_MAX,
        minTimeout: spans.pause,
        randomize: true,
        shouldRetry: ({ error }) => isRetried(error) && !all.aborted,
      });
    },
    close: () => handler.destroy(),
  };
}

function createHandler(requestTimeout: number): NodeHttpHandler {
  const agent = { keepAlive: true, maxSockets: ROLE_CONNECTIONS_MAX };
  return new NodeHttpHandler({
    connectionTimeout: requestTimeout,
    requestTimeout,
    throwOnRequestTimeout: true,
    httpAgent: new HttpAgent(agent),
    httpsAgent: new HttpsAgent(agent),
    logger: SILENT,
  });
}

/** The SDK would write requests and warnings to the terminal. */
const SILENT = {
  trace: () => undefined,
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Each setting that is absent here would be read from the environment or from a file. */
function createClient(requestHandler: NodeHttpHandler, region: string, endpoint: string): STSClient {
  return new STSClient({
    requestHandler,
    region,
    endpoint,
    logger: SILENT,
    // `assumeRole` asks again itself, with a new token.
    maxAttempts: 1,
    retryMode: 'standard',
    defaultsMode: 'standard',
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    authSchemePreference: [],
    sigv4aSigningRegionSet: [],
    userAgentAppId: async () => undefined,
    credentialDefaultProvider: () => async () => {
      throw new TypeError('A question with an identity token is not signed');
    },
  });
}

interface AnsweredCredentials {
  readonly AccessKeyId?: string | undefined;
  readonly SecretAccessKey?: string | undefined;
  readonly SessionToken?: string | undefined;
  readonly Expiration?: Date | undefined;
}

function credentialsOf(answered: AnsweredCredentials | undefined): RoleCredentials {
  const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '', Expiration } = answered ?? {};
  const expires = Expiration?.getTime() ?? Number.NaN;
  if (AccessKeyId === '' || SecretAccessKey === '' || SessionToken === '' || !(Math.abs(expires) < 250e12)) {
    throw new RoleRefused('failed', 'The token service gave an answer without credentials');
  }
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: SessionToken,
    expiresAt: timestamp(new Date(expires).toISOString()),
  };
}
