/**
 * An issuer of identity tokens on loopback, over TLS: its configuration, its keys, and tokens that it signs. A test may
 * make it misbehave.
 *
 * Invariants: its keys live in memory and are gone with the process.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { exportJWK, type GenerateKeyPairResult, generateKeyPair, type JWK, SignJWT } from 'jose';
import { createHttpEgress } from '../../adapters/http-egress/egress.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import { createAuthority } from './certificates.ts';
import { cleanUp, type Ending } from './cleanup.ts';

export type Claims = Readonly<Record<string, unknown>>;

export interface TestIssuer {
  readonly url: string;
  readonly keys: GenerateKeyPairResult;
  /** The public key, as the issuer lists it. */
  readonly publicJwk: JWK;
  /** The paths of the requests that arrived. */
  readonly requests: string[];
  /** Answers by path, instead of its own. */
  readonly answers: Map<string, (response: ServerResponse) => void>;
  /** Signs a token that is good for `audience` and the subject `repo:acme/site`, but for the members of `claims`. */
  token(claims?: Claims, header?: Claims): Promise<string>;
}

export const CONFIGURATION = '/.well-known/openid-configuration';
export const KEYS = '/keys';

/** TLS on loopback for issuers of any kind, and requests that trust it. */
export interface IssuerNetwork {
  /** The certificate, in PEM, that servers of their own processes must trust. */
  readonly authority: string;
  readonly outgoing: OutgoingRequests;
  /** Serves the handler at the URL that it returns. */
  serve(context: Ending, handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<string>;
}

/** Issues certificates of the authority; tests whose other servers have one pass it. */
export function createIssuerNetwork(authority = createAuthority()): IssuerNetwork {
  const certificate = authority.issue(['127.0.0.1', 'localhost']);
  const outgoing = createHttpEgress({
    ownUrls: ['http://localhost:8080'],
    privateAllowed: true,
    authorities: [authority.cert],
  });
  return {
    authority: authority.cert,
    outgoing,
    serve: async (context, handler) => {
      const server = createServer(certificate, handler);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      cleanUp(context, async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      });
      return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
  };
}

/** Making an RSA key takes long, so all issuers of a process have the same. */
let shared: Promise<GenerateKeyPairResult> | null = null;

export interface TestIssuerOptions {
  readonly clock: Pick<Clock, 'now'>;
  readonly audience: string;
}

export async function startIssuer(
  context: Ending,
  network: IssuerNetwork,
  { clock, audience }: TestIssuerOptions,
): Promise<TestIssuer> {
  const keys = await (shared ??= generateKeyPair('RS256', { extractable: true }));
  const publicJwk: JWK = { ...(await exportJWK(keys.publicKey)), kid: 'key-1', alg: 'RS256', use: 'sig' };
  const requests: string[] = [];
  const answers = new Map<string, (response: ServerResponse) => void>();
  const url: string = await network.serve(context, (request, response) => {
    const path = request.url ?? '';
    requests.push(path);
    const own = answers.get(path);
    if (own !== undefined) own(response);
    else if (path === CONFIGURATION) json(response, { issuer: url, jwks_uri: `${url}${KEYS}` });
    else if (path === KEYS) json(response, { keys: [publicJwk] });
    else response.writeHead(404).end();
  });
  let tokens = 0;
  return {
    url,
    keys,
    publicJwk,
    requests,
    answers,
    token: async (claims = {}, header = {}) => {
      tokens += 1;
      const now = Date.parse(clock.now()) / 1_000;
      const all = {
        ...{ iss: url, aud: audience, sub: 'repo:acme/site', jti: `${url} ${tokens}` },
        ...{ iat: now, exp: now + 300 },
        ...claims,
      };
      const payload = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
      return new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: 'key-1', ...header }).sign(keys.privateKey);
    },
  };
}

export function json(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
