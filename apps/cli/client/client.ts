/**
 * A client of the service's API, for programs and for the command line. Its types come from the OpenAPI document, so
 * that a call which the service does not know does not compile.
 *
 * Invariants: the token goes to `baseUrl` and nowhere else. What a second time would change is sent again only where
 * nothing was sent, and an identity token never (repeating.ts).
 */
import { type AccessToken, type ErrorBody, OPERATIONS, type Operations } from './operations.ts';
import { bodyInParts, type Part, type StreamedBody } from './parts.ts';
import type { Environment } from './proxy.ts';
import { GATEWAY_STATUSES, retryAfter, sendRepeatedly, withWholeBody } from './repeating.ts';
import {
  createTransport,
  readText,
  SAFE_METHODS,
  type Transport,
  UnreachableError,
  type WireAnswer,
} from './transport.ts';

export interface ClientOptions {
  /** The address of the API, for example `https://strata.example`. */
  readonly baseUrl: string;
  readonly token?: string | undefined;
  /** Names the program in `User-Agent`. */
  readonly userAgent?: string;
  /** Where proxies are named; by default `process.env`. */
  readonly environment?: Environment;
  /** Is told of each wait before a request is sent again. The status is null where no answer came. */
  readonly onWait?: (seconds: number, status: number | null) => void;
  /** Is told of each request and its status, without headers and bodies, which may hold secrets. */
  readonly onRequest?: (line: string) => void;
  readonly transport?: Transport;
}

type Given<Part, Name extends string> = Part extends undefined ? object : { readonly [Key in Name]: Part };
type GivenQuery<Part> = Part extends undefined ? object : { readonly query?: Part };
/** The brackets keep together a body that is one of several shapes. */
type GivenBody<Body> = [Body] extends [undefined] ? object : { readonly body: Exclude<Body, undefined> };
/** Contents that the changes of a commit name. */
type GivenParts<Id> = Id extends 'writeCommit' ? { readonly parts?: readonly Part[] } : object;
export type CallInput<Id extends keyof Operations> = Given<Operations[Id]['path'], 'path'> &
  GivenQuery<Operations[Id]['query']> &
  GivenBody<Operations[Id]['body']> &
  GivenParts<Id>;

export interface RawRequest {
  readonly method: string;
  /** Below `baseUrl`, beginning with a slash; with its query. */
  readonly target: string;
  /** A text is JSON. */
  readonly body?: string | StreamedBody | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer other than 2xx. `detail` is what the service says. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly detail: string;
  readonly body: string;
  readonly requestId: string | null;
  /** Whether a request that changes something may have been carried out all the same. */
  readonly mayBeDone: boolean;

  constructor(status: number, body: string, requestId: string | null, method = 'GET') {
    const detail = detailOf(body) ?? `The service answered with status ${status}`;
    super(detail);
    this.status = status;
    this.detail = detail;
    this.body = body;
    this.requestId = requestId;
    this.mayBeDone = GATEWAY_STATUSES.has(status) && !SAFE_METHODS.has(method.toUpperCase());
  }
}

/** What was given names nothing that could be asked for. */
export class InvalidInputError extends Error {
  override readonly name = 'InvalidInputError';
}

/** What a device login has come to. */
export type Poll =
  | { readonly status: 'pending' }
  /** The device polls too fast. */
  | { readonly status: 'wait'; readonly seconds: number }
  /** No answer came, or one that says nothing about the login. */
  | { readonly status: 'unanswered'; readonly error: UnreachableError | ApiError }
  | {
      readonly status: 'granted';
      readonly token: string;
      readonly username: string;
      readonly access_token: AccessToken;
    };

export interface Client {
  /** Calls an operation of the API and returns the JSON of its answer; throws ApiError for an answer other than 2xx. */
  call<Id extends keyof Operations>(id: Id, input: CallInput<Id>): Promise<Operations[Id]['answer']>;
  /** The same, with the text of the answer beside it. */
  callWithText<Id extends keyof Operations>(
    id: Id,
    input: CallInput<Id>,
  ): Promise<{ readonly text: string; readonly value: Operations[Id]['answer'] }>;
  /** Sends any request to the API, and returns any answer. */
  send(request: RawRequest): Promise<WireAnswer>;
  /** Asks for the state of a device login; the OpenAPI document leaves this route out. */
  poll(session: { readonly id: string; readonly secret_token: string }): Promise<Poll>;
}

/** How long a device that polls too fast waits if it is not told: what RFC 8628, section 3.5, adds. */
const POLL_WAIT_SECONDS = 5;
/** An identity token works once: the refusal of a repeat would hide what became of the first try. */
const NEVER_REPEATED = OPERATIONS.exchangeIdentityToken.path;

export function createClient(options: ClientOptions): Client {
  const base = options.baseUrl.replace(/\/+$/, '');
  const transport = options.transport ?? createTransport(options.environment ?? process.env);

  const send = async (request: RawRequest): Promise<WireAnswer> => {
    if (!request.target.startsWith('/')) throw new InvalidInputError('A target begins with a slash');
    const answer = await transport({
      method: request.method,
      url: base + request.target,
      headers: {
        'user-agent': options.userAgent ?? 'strata-client',
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        ...(request.body == null ? {} : { 'content-type': contentTypeOf(request.body) }),
        ...request.headers,
      },
      body: request.body ?? null,
    });
    const id = answer.header('x-request-id') ?? '-';
    options.onRequest?.(`${request.method} ${base}${withoutSecrets(request.target)} ${answer.status} ${id}`);
    return answer;
  };

  const sendAgain = (request: RawRequest, once = send): Promise<WireAnswer> => {
    if (request.target === NEVER_REPEATED) return once(request);
    const passes = (status: number): boolean => GATEWAY_STATUSES.has(status);
    return sendRepeatedly({ method: request.method, passes, onWait: options.onWait }, () => once(request));
  };

  const callWithText: Client['callWithText'] = async (id, input) => {
    const request = requestOf(id, input);
    const answer = await sendAgain(request, async (asked) => withWholeBody(await send(asked)));
    const text = await readText(answer.body);
    if (answer.status < 200 || answer.status > 299)
      throw new ApiError(answer.status, text, answer.header('x-request-id'), request.method);
    return { text, value: parseAnswer(text) };
  };

  const pollOnce = async (target: string): Promise<Poll> => {
    const answer = await send({ method: 'GET', target });
    const text = await readText(answer.body);
    if (answer.status === 429) return { status: 'wait', seconds: retryAfter(answer) ?? POLL_WAIT_SECONDS };
    if (answer.status === 202) return { status: 'pending' };
    if (answer.status === 200) return { status: 'granted', ...parseGranted(text) };
    const error = new ApiError(answer.status, text, answer.header('x-request-id'));
    if (answer.status >= 500) return { status: 'unanswered', error };
    throw error;
  };

  return {
    send: (request) => sendAgain(request),
    callWithText,
    call: async (id, input) => (await callWithText(id, input)).value,
    poll: async ({ id, secret_token }) => {
      const query = new URLSearchParams({ secret_token }).toString();
      try {
        return await pollOnce(`/v1/auth/sessions/${encodeURIComponent(id)}/poll?${query}`);
      } catch (error) {
        if (error instanceof UnreachableError) return { status: 'unanswered', error };
        throw error;
      }
    },
  };
}

/** The parts of a request's input, whichever of them its operation has. */
interface AnyInput {
  readonly path?: object;
  readonly query?: object;
  readonly body?: unknown;
  readonly parts?: readonly Part[];
}

function contentTypeOf(body: string | StreamedBody): string {
  return typeof body === 'string' ? 'application/json' : body.contentType;
}

function requestOf(id: keyof Operations, input: AnyInput): RawRequest {
  const { method, path } = OPERATIONS[id];
  const values = new Map(Object.entries(input.path ?? {}).map(([name, value]) => [name, String(value)] as const));
  const filled = path.replaceAll(/\{(\w+)\}/g, (_whole, name: string) => {
    const value = values.get(name) ?? '';
    const segments = name === 'path' ? value.split('/') : [value];
    // A dot segment would name another route.
    if (value === '' || segments.some((segment) => segment === '.' || segment === '..')) {
      throw new InvalidInputError(`${JSON.stringify(value)} is no ${name}`);
    }
    return segments.map(encodeURIComponent).join('/');
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined) query.set(name, String(value));
  }
  const target = query.size === 0 ? filled : `${filled}?${query.toString()}`;
  const { body, parts = [] } = input;
  const json = body === undefined ? null : JSON.stringify(body);
  return { method, target, body: json === null || parts.length === 0 ? json : bodyInParts(json, parts) };
}

function withoutSecrets(target: string): string {
  return target.replace(/(secret_token=)[^&]*/, '$1…');
}

/** The service is trusted to answer as its document says. */
function parseAnswer<Answer>(text: string): Answer {
  return (text === '' ? undefined : JSON.parse(text)) as Answer;
}

function parseGranted(text: string): { token: string; username: string; access_token: AccessToken } {
  return JSON.parse(text) as { token: string; username: string; access_token: AccessToken };
}

/** Returns what an error's body says: the text of `detail`, or a line for each field at fault. */
function detailOf(body: string): string | null {
  const detail = readDetail(body);
  if (detail === null || typeof detail === 'string') return detail;
  const lines = detail.map(({ loc, msg }) => {
    const place = loc.filter((part) => part !== 'body' && part !== 'query' && part !== 'path').join('.');
    return place === '' ? msg : `${place}: ${msg}`;
  });
  return lines.length === 0 ? null : lines.join('\n');
}

/** Null for what is no error of the service: a proxy's page, for example. */
function readDetail(body: string): ErrorBody['detail'] | null {
  let value;
  try {
    value = JSON.parse(body) as { readonly detail?: unknown } | null;
  } catch {
    return null;
  }
  const detail = value?.detail;
  if (typeof detail === 'string') return detail;
  if (!Array.isArray(detail) || !detail.every(isFault)) return null;
  return detail as ErrorBody['detail'];
}

function isFault(entry: unknown): boolean {
  if (typeof entry !== 'object' || entry === null) return false;
  return 'loc' in entry && Array.isArray(entry.loc) && 'msg' in entry && typeof entry.msg === 'string';
}
