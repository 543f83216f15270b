/**
 * `strata oidc-exchange`: an access token for the identity token of a job.
 *
 * Invariants: the access token goes to standard output, and with --save also to the configuration file. The identity
 * token goes to the service alone, once, and only if it was made for the service: one that was made for another could
 * be used there by whoever reads it here.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { ApiError, type Client } from '../client/client.ts';
import { sendRepeatedly, withWholeBody } from '../client/repeating.ts';
import { createTransport, readText, UnreachableError } from '../client/transport.ts';
import type { Context, Given } from '../session/context.ts';
import { codeOf, Failure, usageFailure } from '../session/failure.ts';
import { findHost, type Host, publicClient } from '../session/host.ts';
import { storeHost } from '../settings/config-file.ts';
import { relativeTime } from '../terminal/values.ts';
import { printBody } from './show.ts';

/**
 * Where CI systems that make the token beforehand put it. CircleCI is left out: the audience of CIRCLE_OIDC_TOKEN is
 * the organization, so that its command must make another token.
 */
const VARIABLES = ['SERVICE_ID_TOKEN', 'BITBUCKET_STEP_OIDC_TOKEN', 'TFC_WORKLOAD_IDENTITY_TOKEN'];
/** What a runner answers with a token has in memory. */
const RUNNER_BYTES_MAX = 1024 * 1024;

export async function exchange(context: Context, given: Given): Promise<void> {
  const { terminal, globals } = context;
  const host = await findHost(context);
  const identity = await identityToken(context, given, host);
  terminal.hide(identity);
  const audience = ownAudience(identity, given, host);
  const client = publicClient(context, host.baseUrl);
  const { text, value } = await exchanged(client, identity);
  terminal.hide(value.token);
  if (given.flag('save')) {
    const username = context.environment['SERVICE_USERNAME'] ?? usernameIn(audience, host);
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
    if ((error instanceof ApiError || error instanceof UnreachableError) && error.mayBeDone) {
      throw new Failure(1, error.message, 'The identity token may be used up: exchange a new one, of another job');
    }
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
  if (environment['CIRCLECI'] === 'true') return tokenOfCircleCi(context, audienceOf(context, given, host));
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
  const transport = createTransport(context.environment);
  const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
  const request = { method: 'GET', url: target.href, headers, body: null };
  const onWait = (seconds: number): void =>
    context.terminal.say(`The runner gave no identity token: asking again in ${seconds} s`);
  const answer = await sendRepeatedly({ method: 'GET', passes: (status) => status >= 500, onWait }, async () =>
    withWholeBody(await transport(request), RUNNER_BYTES_MAX),
  );
  const value = answer.status === 200 ? readValue(await readText(answer.body)) : null;
  if (value === null) throw new Failure(1, `The runner gave no identity token (status ${answer.status})`);
  return value;
}

/** Lets CircleCI's own command make a token: "OIDC tokens with custom claims" in its documentation. */
async function tokenOfCircleCi({ environment, folder }: Context, audience: string): Promise<string> {
  const args = ['run', 'oidc', 'get', '--claims', JSON.stringify({ aud: audience })];
  const options = { cwd: folder, env: { ...environment }, maxBuffer: RUNNER_BYTES_MAX };
  return new Promise((resolve, reject) => {
    execFile('circleci', args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const isMissing = codeOf(error) === 'ENOENT';
      const why = isMissing ? 'the command is not installed in this job' : stderr.trim() || 'the command failed';
      const hint = 'Use an image with the command line of CircleCI, or give --id-token a token of this audience';
      reject(new Failure(1, `circleci run oidc get made no token for ${audience}: ${why}`, hint));
    });
  });
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

/** Returns the audience of a token that is for the service alone; throws a failure for another, with its audiences. */
function ownAudience(identity: string, given: Given, host: Host): string {
  const audiences = readAudiences(identity);
  if (audiences === null) throw usageFailure('The identity token cannot be read: it is no signed JSON Web Token');
  const named = given.text('audience');
  const [own] = audiences;
  // One that is for another as well could be used there too.
  const isOwn = audiences.every((audience) => audience === named || nameIn(audience, host) !== null);
  if (own !== undefined && isOwn) return own;
  throw usageFailure(
    `The identity token is for ${audiences.join(', ') || 'no audience'}, and not for ${host.webUrl} alone: it was not sent`,
    `Let the CI system make one for ${host.webUrl}/USERNAME; SERVICE_WEB_URL names another address of the website`,
  );
}

/** The account that the token was made for. The service has checked the token already. */
function usernameIn(audience: string, host: Host): string | null {
  return nameIn(audience, host) ?? (audience.split('/').at(-1) || null);
}

function nameIn(audience: string, { webUrl, baseUrl }: Host): string | null {
  const prefix = [webUrl, baseUrl].map((address) => `${address}/`).find((start) => audience.startsWith(start));
  return prefix === undefined ? null : audience.slice(prefix.length);
}

/** Null for what is no token. */
function readAudiences(identity: string): readonly string[] | null {
  const [, payload, signature] = identity.split('.');
  if (payload === undefined || signature === undefined) return null;
  try {
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { readonly aud?: unknown } | null;
    return [claims?.aud].flat().filter((audience) => typeof audience === 'string');
  } catch {
    // Its payload is no JSON.
    return null;
  }
}
