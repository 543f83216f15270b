/**
 * `strata login` and `strata logout`: a device login, and its end.
 *
 * Invariants: the secret is in the configuration file and nowhere else. The address that the service returns for
 * polling is ignored.
 */
import { hostname } from 'node:os';
import { ApiError, type Client, type Poll } from '../client/client.ts';
import type { DeviceSession } from '../client/operations.ts';
import type { Context, Given } from '../session/context.ts';
import { Failure } from '../session/failure.ts';
import { capturedGit, helperCommand } from '../session/git.ts';
import { addressOf, findHost, notSignedIn, publicClient, signedIn } from '../session/host.ts';
import { forgetHost, storeHost } from '../settings/config-file.ts';
import { openBrowser } from '../terminal/browser.ts';
import { showable } from '../terminal/text.ts';

const HOSTNAME_LENGTH_MAX = 255;
/** How far the interval between two polls grows while none is answered. */
const INTERVAL_SECONDS_MAX = 30;
/** How long after its end a session is still polled: clocks may differ. */
const GRACE_MS = 60_000;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export async function login(context: Context, given: Given): Promise<void> {
  const { terminal } = context;
  const { baseUrl, configFile } = await findHost(context);
  warnOfPlainHttp(context, baseUrl);
  const client = publicClient(context, baseUrl);
  const label = (given.text('hostname') ?? hostname()).slice(0, HOSTNAME_LENGTH_MAX) || 'a device';
  const session = await client.call('createDeviceSession', { body: { hostname: label } });
  terminal.hide(session.secret_token);
  tellHowToGrant(context, session);
  // Where no browser opens, the address was printed.
  openBrowser(terminal, context.environment, session.verification_url);
  if (terminal.isInteractive) terminal.say('Waiting until the login is granted; Ctrl-C ends it');
  const granted = await waitForGrant(client, session, given.number('poll-seconds') ?? session.interval);
  const webUrl = webAddress(context, session, baseUrl);
  terminal.hide(granted.token);
  const { id: tokenId, expires_at: expiresAt } = granted.access_token;
  const host = { token: granted.token, username: granted.username, webUrl, tokenId, expiresAt };
  try {
    await storeHost(configFile, baseUrl, host);
  } catch (error) {
    await revokeLost(context, granted.token, tokenId);
    throw error;
  }
  if (given.flag('setup-git')) await setUpGit(context, { baseUrl, webUrl });
  if (context.globals.json) {
    terminal.out(`${JSON.stringify({ username: granted.username, access_token: granted.access_token })}\n`);
    return;
  }
  terminal.out(`Signed in to ${baseUrl} as ${showable(granted.username)}\n`);
  if (given.flag('setup-git')) terminal.out(`git asks strata for passwords of ${webUrl} now\n`);
  if (terminal.isInteractive && !given.flag('setup-git')) {
    terminal.say('Next: strata login --setup-git makes git use this login; strata repo list');
  }
}

/** Revokes a token that could not be stored, since nobody would know it. The failure to store it is what counts. */
async function revokeLost(context: Context, token: string, id: string): Promise<void> {
  const own: Context = { ...context, environment: { ...context.environment, SERVICE_TOKEN: token } };
  const { client } = await signedIn(own);
  await revoke(client, id).catch(() => context.terminal.warn(`Revoke the token ${id}: it could not be stored`));
}

function warnOfPlainHttp({ terminal }: Context, baseUrl: string): void {
  const { protocol, hostname: host } = new URL(baseUrl);
  if (protocol === 'http:' && !LOOPBACK.test(host))
    terminal.warn(`${baseUrl} is not encrypted: others can read the token`);
}

function tellHowToGrant({ terminal, globals }: Context, session: DeviceSession): void {
  const lines = [
    'Open this page and grant the login, if it shows the same code:',
    '',
    `    ${showable(session.verification_url)}`,
    `    code: ${terminal.coloured(showable(session.user_code), 'bold')}`,
    '',
  ].join('\n');
  // With --json standard output is the answer alone.
  if (globals.json) terminal.say(lines);
  else terminal.out(`${lines}\n`);
}

async function waitForGrant(
  client: Client,
  session: DeviceSession,
  seconds: number,
): Promise<Extract<Poll, { status: 'granted' }>> {
  const deadline = Date.parse(session.expires_at) + GRACE_MS;
  if (Number.isNaN(deadline)) throw new Failure(1, 'The service names no end of the login', 'Try again: strata login');
  let interval = seconds;
  let unanswered: Error | null = null;
  for (let wait = interval; ; ) {
    const waitMs = Math.min(wait * 1000, Math.max(0, deadline - Date.now()));
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const poll = await pollOnce(client, session, unanswered !== null);
    if (poll.status === 'granted') return poll;
    if (Date.now() >= deadline) throw unanswered ?? expired();
    unanswered = poll.status === 'unanswered' ? poll.error : null;
    // RFC 8628, section 3.5: a client whose polls are not answered polls at longer and longer intervals.
    interval = poll.status === 'unanswered' ? Math.max(seconds, Math.min(interval * 2, INTERVAL_SECONDS_MAX)) : seconds;
    wait = poll.status === 'wait' ? poll.seconds : interval;
  }
}

async function pollOnce(client: Client, session: DeviceSession, isAfterUnanswered: boolean): Promise<Poll> {
  try {
    return await client.poll(session);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 403) throw new Failure(1, 'The login was denied');
    if (error.status === 410 && isAfterUnanswered) throw lost();
    if (error.status === 410 || error.status === 404) throw expired();
    throw error;
  }
}

function expired(): Failure {
  return new Failure(1, 'The login was not granted in time', 'Try again: strata login');
}

/** The token is handed out once, perhaps in the answer that did not arrive. */
function lost(): Failure {
  return new Failure(
    1,
    'The login has ended: if it was granted, its token was lost with an answer that did not arrive',
    'Try again: strata login; the list of access tokens on the website shows a token that was lost, to revoke it',
  );
}

/** The address of the website: that of the page where the login was granted, without its path. */
function webAddress(
  { globals, environment }: Context,
  { verification_url: page }: DeviceSession,
  baseUrl: string,
): string {
  const named = globals.webUrl ?? environment['SERVICE_WEB_URL'];
  if (named !== undefined && named !== '') return addressOf(named);
  const found = /^(https?:\/\/.+?)\/access-tokens\/create\b/.exec(page)?.[1];
  return found === undefined || !URL.canParse(found) ? baseUrl : addressOf(found);
}

async function setUpGit(context: Context, host: { readonly baseUrl: string; readonly webUrl: string }): Promise<void> {
  const key = `credential.${host.webUrl}.helper`;
  // The empty value ends the list of helpers that were set before: gitcredentials(7).
  const set = [
    await capturedGit(context, ['config', '--global', '--replace-all', key, '']),
    await capturedGit(context, ['config', '--global', '--add', key, helperCommand(context, host)]),
  ];
  if (set.includes(null))
    throw new Failure(1, "git's configuration cannot be written", 'See git config --global --list');
}

export async function logout(context: Context, given: Given): Promise<void> {
  const { terminal, environment } = context;
  // The token of the file is meant, even while SERVICE_TOKEN hides it.
  const own: Context = { ...context, environment: { ...environment, SERVICE_TOKEN: undefined } };
  const host = await findHost(own);
  if (host.token === null) throw notSignedIn(host);
  if (!given.flag('local') && host.tokenId !== null) {
    const { client } = await signedIn(own);
    await revoke(client, host.tokenId);
  }
  await forgetHost(host.configFile, host.baseUrl);
  if (!context.globals.json) terminal.out(`Signed out of ${host.baseUrl}\n`);
  if ((environment['SERVICE_TOKEN'] ?? '') !== '') terminal.warn('SERVICE_TOKEN is still set');
}

async function revoke(client: Client, id: string): Promise<void> {
  try {
    await client.call('deleteAccessToken', { path: { id } });
  } catch (error) {
    // It is revoked or expired already.
    if (error instanceof ApiError && error.status === 401) return;
    if (error instanceof ApiError) throw error;
    throw new Failure(
      1,
      String(error instanceof Error ? error.message : error),
      'strata logout --local forgets the token without revoking it',
    );
  }
}
