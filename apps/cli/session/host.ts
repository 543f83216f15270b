/**
 * Which service a command talks to, as whom, and with which token.
 *
 * Invariants: a token of the configuration file goes only to the service that it is stored for. SERVICE_TOKEN goes to
 * the service that the caller names, else to the current one.
 */
import { type Client, createClient } from '../client/client.ts';
import { type Config, configPath, readConfig } from '../settings/config-file.ts';
import type { Context } from './context.ts';
import { Failure, usageFailure } from './failure.ts';

export const BASE_URL_OTHERWISE = 'http://localhost:8080';

export interface Host {
  readonly baseUrl: string;
  readonly webUrl: string;
  readonly token: string | null;
  /** Where the token comes from. */
  readonly tokenSource: 'SERVICE_TOKEN' | 'file' | null;
  readonly tokenId: string | null;
  readonly expiresAt: string | null;
  /** The name of the account, if the environment or the file tells it. */
  readonly username: string | null;
  /** Null if there is no folder for it. */
  readonly configFile: string | null;
}

export async function findHost(context: Context): Promise<Host> {
  const { environment, globals } = context;
  const configFile = configPath(environment);
  const config = await readConfig(configFile, context.terminal.warn);
  const baseUrl = addressOf(
    globals.baseUrl ?? variable(context, 'SERVICE_BASE_URL') ?? config?.current ?? BASE_URL_OTHERWISE,
  );
  const stored = storedHost(config, baseUrl);
  const given = variable(context, 'SERVICE_TOKEN');
  const webUrl = globals.webUrl ?? variable(context, 'SERVICE_WEB_URL') ?? stored?.webUrl ?? baseUrl;
  const token = given ?? stored?.token ?? null;
  if (token !== null) {
    context.terminal.hide(token);
    checkToken(token, given === null ? (configFile ?? '') : 'SERVICE_TOKEN');
  }
  return {
    baseUrl,
    webUrl: addressOf(webUrl),
    token,
    tokenSource: given !== null ? 'SERVICE_TOKEN' : token === null ? null : 'file',
    tokenId: given === null ? (stored?.tokenId ?? null) : null,
    expiresAt: given === null ? (stored?.expiresAt ?? null) : null,
    username: variable(context, 'SERVICE_USERNAME') ?? (given === null ? (stored?.username ?? null) : null),
    configFile,
  };
}

/** No header of HTTP and no line for git can hold such a token, and their errors say less. */
function checkToken(token: string, source: string): void {
  if (!/[^\x21-\x7e]/.test(token)) return;
  const found = /[\r\n]/.test(token) ? 'a line feed' : 'white space or another character that no token has';
  throw usageFailure(`The token of ${source} holds ${found}`, 'Copy it again, as one line');
}

function variable({ environment }: Context, name: string): string | null {
  const value = environment[name]?.trim();
  return value === undefined || value === '' ? null : value;
}

function storedHost(config: Config | null, baseUrl: string) {
  for (const [url, host] of config?.hosts ?? []) {
    if (url.replace(/\/+$/, '') === baseUrl) return host;
  }
  return null;
}

/** Returns an address without a slash at its end; throws a failure for what is no address of a service. */
export function addressOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw usageFailure(`${JSON.stringify(text)} is no address of a service`, 'Give one such as https://strata.example');
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw usageFailure('The address of a service has no user, query or fragment');
  }
  const address = url.href.replace(/\/+$/, '');
  if (!address.endsWith('/v1')) return address;
  throw usageFailure(
    `${address} ends in /v1, which every path of the API begins with`,
    `Leave it out: ${address.slice(0, -'/v1'.length)}`,
  );
}

/** Returns a client for anybody's requests: logging in, exchanging a token. */
export function publicClient(context: Context, baseUrl: string): Client {
  return newClient(context, baseUrl, undefined);
}

export interface Session {
  readonly host: Host & { readonly token: string };
  readonly client: Client;
}

/** Returns a client with the caller's token; throws a failure with status 3 without one. */
export async function signedIn(context: Context): Promise<Session> {
  const host = await findHost(context);
  const { token } = host;
  if (token === null) throw notSignedIn(host);
  return { host: { ...host, token }, client: newClient(context, host.baseUrl, token) };
}

export function notSignedIn({ baseUrl }: Pick<Host, 'baseUrl'>): Failure {
  return new Failure(3, `Not signed in to ${baseUrl}`, `${loginCommand(baseUrl)}, or set SERVICE_TOKEN`);
}

export function loginCommand(baseUrl: string): string {
  return baseUrl === BASE_URL_OTHERWISE ? 'strata login' : `strata login --base-url ${baseUrl}`;
}

function newClient(context: Context, baseUrl: string, token: string | undefined): Client {
  const { terminal, globals, environment, version } = context;
  return createClient({
    baseUrl,
    token,
    environment,
    userAgent: `strata/${version} node/${process.versions.node}`,
    onWait: (seconds, status) => {
      const why =
        status === 429
          ? 'Too many requests'
          : status === null
            ? 'The service was not reached'
            : 'The service cannot answer now';
      terminal.say(`${why}: trying again in ${seconds} s`);
    },
    ...(globals.debug ? { onRequest: terminal.say } : {}),
  });
}
