/** Device login: creates a session, and answers the polls that fetch its token. */
import type { z } from 'zod';
import type { Cause } from '../../../core/kernel/envelope.ts';
import { type DeviceSessionId, parseUuid } from '../../../core/kernel/ids.ts';
import { DEVICE_POLL_INTERVAL_SECONDS } from '../../../core/kernel/limits.ts';
import { isIpv6, wideNetworkOf } from '../../../core/kernel/network.ts';
import { type NetworkLimits, networkCounts } from '../../../core/use-cases/callers/network-counts.ts';
import { requestDeviceLogin } from '../../../core/use-cases/tokens/device-login.ts';
import { findPolledSession, pollDeviceLogin } from '../../../core/use-cases/tokens/device-login-token.ts';
import { upToDate } from '../../front-door/admission.ts';
import { ok, problem } from '../http/answer.ts';
import { type Outcome, type PublicCall, publicRoute, type Route } from '../route.ts';
import { DEVICE_SESSION, NEW_DEVICE_SESSION, POLL_GRANTED, POLL_PENDING, POLL_QUERY } from '../schemas/device-login.ts';
import { ID_PARAMS } from '../schemas/params.ts';
import { tokenObject } from './access-tokens.ts';

/** Device logins that one network, and a /48 of IPv6, may start within a minute (core/kernel/network.ts). */
export const DEVICE_SESSIONS_PER_MINUTE_MAX = 10;
export const DEVICE_SESSIONS_PER_MINUTE_WIDE_MAX = 50;

export const DEVICE_LOGIN_ROUTES: readonly Route[] = [
  publicRoute({
    operationId: 'createDeviceSession',
    tag: 'Device login',
    summary: 'Begin a device login',
    description:
      'For a device without a browser. The device shows `user_code`; a person opens `verification_url` and grants the login. The device polls `poll_url?secret_token=…` every `interval` seconds: it gets 202 until then, and the access token once.',
    method: 'POST',
    path: '/v1/auth/sessions',
    schemas: { body: NEW_DEVICE_SESSION },
    answers: { 201: DEVICE_SESSION },
    problems: [429, 503],
    handle: postDeviceSession,
  }),
  publicRoute({
    operationId: 'pollDeviceSession',
    tag: 'Device login',
    summary: 'Poll a device login',
    unlisted: true,
    method: 'GET',
    path: '/v1/auth/sessions/{id}/poll',
    schemas: { params: ID_PARAMS, query: POLL_QUERY },
    answers: { 200: POLL_GRANTED, 202: POLL_PENDING },
    problems: [403, 404, 410, 429, 503],
    handle: pollDeviceSession,
  }),
];

const DEVICE_SESSIONS: NetworkLimits = {
  network: { name: 'device-sessions', timesMax: DEVICE_SESSIONS_PER_MINUTE_MAX, spanMs: 60_000 },
  wide: { name: 'device-sessions-wide', timesMax: DEVICE_SESSIONS_PER_MINUTE_WIDE_MAX, spanMs: 60_000 },
};

/** The events of a device login have no account as their actor: the device has only the session's secret. */
function causeOf({ requestId }: PublicCall, sourceAddressRef: string | null): Cause {
  return { actor: { kind: 'system', id: 'device-login' }, requestId, sourceAddressRef, causationId: null };
}

async function postDeviceSession(
  call: PublicCall,
  { body }: { readonly body: z.output<typeof NEW_DEVICE_SESSION> },
): Promise<Outcome> {
  const { context, request } = call;
  const address = context.clientAddress(request);
  const waitSeconds = await context.rateLimits.take(networkCounts(DEVICE_SESSIONS, address));
  if (waitSeconds !== null) return tooMany('Too many login sessions from this address', waitSeconds);
  // Whoever has most logins waiting gives way: a customer with all of a /48 counts as one.
  const network = isIpv6(address) ? wideNetworkOf(address) : address;
  const userCode = context.newUserCode();
  const secret = context.newDeviceSecret();
  const { hostname } = body;
  const begun = await requestDeviceLogin(context, { hostname, address, network, userCode, secret });
  if ('refused' in begun) return begun;
  const { baseUrl, webUrl } = context.addresses();
  const session: z.output<typeof DEVICE_SESSION> = {
    id: begun.id,
    user_code: userCode,
    secret_token: secret,
    poll_url: `${baseUrl}/v1/auth/sessions/${begun.id}/poll`,
    verification_url: `${webUrl}/access-tokens/create?auth_session_id=${begun.id}`,
    interval: DEVICE_POLL_INTERVAL_SECONDS,
    expires_at: begun.expiresAt,
  };
  return ok(session, 201);
}

async function pollDeviceSession(
  call: PublicCall,
  input: { readonly params: z.output<typeof ID_PARAMS>; readonly query: z.output<typeof POLL_QUERY> },
): Promise<Outcome> {
  const { context, request } = call;
  await upToDate(context);
  const id = parseUuid<DeviceSessionId>(input.params.id);
  if (id === null) return { refused: { code: 'device-session-not-found' } };
  const session = await findPolledSession(context, id, input.query.secret_token);
  if ('refused' in session) return session;
  // The limit counts only polls with the right secret, so that nobody else can use up the device's polls.
  const waitSeconds = context.devicePollRate.take(id);
  if (waitSeconds !== null) return tooMany('Polled faster than the interval of the session', waitSeconds);
  const address = context.clientAddress(request);
  const polled = await pollDeviceLogin(
    context,
    async (account) => causeOf(call, await context.sourceAddressRef(account, address)),
    session,
  );
  if (polled === null) {
    const pending: z.output<typeof POLL_PENDING> = { status: 'pending' };
    return ok(pending, 202);
  }
  if ('refused' in polled) return polled;
  const granted: z.output<typeof POLL_GRANTED> = {
    token: polled.secret,
    username: polled.username,
    access_token: tokenObject({ id: polled.id, ...polled.token }, null),
  };
  return ok(granted);
}

function tooMany(detail: string, waitSeconds: number): Outcome {
  return problem(429, detail, { 'retry-after': String(waitSeconds) });
}
