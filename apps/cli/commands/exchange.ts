/**
 * `strata oidc-exchange`: an access token for the identity token of a job.
 *
 * Invariants: the access token goes to standard output, and with --save also to the configuration file; the
 * identity token goes to the service alone.
 */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ApiError, type Client } from '../client/client.ts';
import { createTransport, readText } from '../client/transport.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, Failure, usageFailure } from '../session/failure.ts';
import { findHost, type Host, publicClient } from '../session/host.ts';
import { storeHost } from '../settings/config-file.ts';
import { relativeTime } from '../terminal/values.ts';
import { printBody } from './show.ts';

/** Where CI systems that make the token beforehand put it. */
const VARIABLES = ['SERVICE_ID_TOKEN', 'BITBUCKET_STEP_OIDC_TOKEN', 'CIRCLE_OIDC_TOKEN_V2', 'CIRCLE_OIDC_TOKEN'];

export async function exchange(context: Context, given: Given): Promise<void> {
  const { terminal, globals } = context;
  const host = await findHost(context);
  const identity = await identityToken(context, given, host);
  terminal.hide(identity);
  const client = publicClient(context, host.baseUrl);
  const { text, value } = await exchanged(client, identity);
  terminal.hide(value.token);
  if (given.flag('save')) {
    const username = context.environment['SERVICE_USERNAME'] ?? usernameIn(identity, host.webUrl);
    const { token, id: tokenId, expires_at: expiresAt } = value;
    await storeHost(host.configFile, host.baseUrl, { token, username, webUrl: host.webUrl, tokenId, expiresAt });
    terminal.say(`Signed in to ${host.baseUrl}; the token expires ${relativeTime(expiresAt)}`);
  }
  if (globals.json) printBody(context, text);
  else if (!given.flag('save')) terminal.out(`${value.token}\n`);
}

async function exchanged(client: Client, identity: string) {
  try {
    return await client.callWithText('exchangeIdentityToken', { body: { id_token: identity } });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    throw new Failure(3, error.detail, 'The owner of the rules reads why: strata trust-rule refusals ID');
  }
}

async function identityToken(context: Context, given: Given, host: Host): Promise<string> {
  const text = given.text('id-token');
  const found = text === undefined ? await tokenOfJob(context, given, host) : await tokenFrom(context, text);
  if (found.trim() === '') throw usageFailure('The identity token is empty');
  return found.trim();
}

async function tokenFrom(context: Context, text: string): Promise<string> {
  if (text === '-') return context.readInput();
  if (!text.startsWith('@')) return text;
  const file = resolve(context.folder, text.slice(1));
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw usageFailure(`${file} cannot be read: ${codeOf(error)}`);
  }
}

async function tokenOfJob(context: Context, given: Given, host: Host): Promise<string> {
  const { environment } = context;
  const named = VARIABLES.map((name) => environment[name] ?? '').find((value) => value !== '');
  if (named !== undefined) return named;
  const [url, token] = [environment['ACTIONS_ID_TOKEN_REQUEST_URL'], environment['ACTIONS_ID_TOKEN_REQUEST_TOKEN']];
  if (url === undefined || token === undefined || !URL.canParse(url)) {
    throw usageFailure(
      'There is no identity token',
      'Give --id-token @FILE or --id-token -, or set SERVICE_ID_TOKEN; a GitHub job needs `permissions: id-token: write`',
    );
  }
  context.terminal.hide(token);
  return tokenOfGitHub(context, { url, token, audience: audienceOf(context, given, host) });
}

function audienceOf({ environment }: Context, given: Given, host: Host): string {
  const named = given.text('audience');
  if (named !== undefined) return named;
  const username = environment['SERVICE_USERNAME'];
  if (username !== undefined && username !== '') return `${host.webUrl}/${username}`;
  throw usageFailure('The account is not known', 'Set SERVICE_USERNAME, or give --audience ADDRESS/USERNAME');
}

interface TokenRequest {
  readonly url: string;
  readonly token: string;
  readonly audience: string;
}

/** Asks the runner of GitHub Actions for a token: "OpenID Connect reference" in its documentation. */
async function tokenOfGitHub(context: Context, { url, token, audience }: TokenRequest): Promise<string> {
  const target = new URL(url);
  target.searchParams.set('audience', audience);
  const answer = await createTransport(context.environment)({
    method: 'GET',
    url: target.href,
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    body: null,
  });
  const value = answer.status === 200 ? readValue(await readText(answer.body, 1024 * 1024)) : null;
  if (value === null) throw new Failure(1, `The runner gave no identity token (status ${answer.status})`);
  return value;
}

function readValue(text: string): string | null {
  try {
    const { value } = JSON.parse(text) as { readonly value?: unknown };
    return typeof value === 'string' ? value : null;
  } catch {
    // Whatever it was, it was no answer with a token.
    return null;
  }
}

/** The account that the token was made for, from its audience. The service has checked the token already. */
function usernameIn(identity: string, webUrl: string): string | null {
  const audiences = [readAudience(identity) ?? []].flat();
  const own = audiences.find((audience) => typeof audience === 'string' && audience.startsWith(`${webUrl}/`));
  return typeof own === 'string' ? own.slice(webUrl.length + 1) : null;
}

function readAudience(identity: string): unknown {
  try {
    const payload = Buffer.from(identity.split('.')[1] ?? '', 'base64url').toString('utf8');
    return (JSON.parse(payload) as { readonly aud?: unknown } | null)?.aud;
  } catch {
    // It is only a convenience.
    return null;
  }
}
