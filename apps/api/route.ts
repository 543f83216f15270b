/**
 * A route: everything that the transport enforces and the OpenAPI document shows, in one value.
 *
 * Invariants: no handler checks permissions. A route states its requirement, and admission enforces it before the
 * handler runs and again whenever a guarded append loses its race.
 */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { Grant } from '../../core/kernel/grants.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import type { StoredBlob } from '../../core/ports/new-contents.ts';
import type { Requirement } from '../../core/use-cases/callers/permission.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import type { Origin } from '../front-door/admission.ts';
import { changedMembers, fixedMembersOf, splitBody } from './fixed-members.ts';
import { type Answer, type FieldFault, problem } from './http/answer.ts';
import { check, namedStep, UNKNOWN_NAMED_MAX } from './http/input.ts';
import type { ApiServices } from './services.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type Outcome = Answer | { readonly refused: Refusal };

/** A request to a public route, which takes no token. */
export interface PublicCall {
  readonly context: ApiServices;
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** Path and query as the client sent them. */
  readonly target: string;
  /** Returns a signal that is aborted when the client disconnects. */
  readonly signal: () => AbortSignal;
}

/** A request whose token is valid and meets the route's requirement. */
export interface AccountCall extends PublicCall {
  readonly principal: Principal;
  /** The log's head when the request arrived; every answer includes the events up to it. */
  readonly position: LogPosition;
  /**
   * Returns the account, cause and guard for an append. The guard fails the append if the token lost its permission.
   */
  readonly origin: () => Promise<Origin>;
}

/** A request about a repository that its token sees. */
export interface RepositoryCall extends AccountCall {
  readonly repository: FoundRepository;
  /** What a request in parts sent beside its JSON; they are there until it is answered. */
  readonly contents: ReadonlyMap<string, StoredBlob>;
}

export interface RouteFacts {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly method: Method;
  /** In OpenAPI's notation: `/v1/repos/{username}/{name}`. `slashedParameter` says which match slashes. */
  readonly path: string;
  /** Costs more of the caller's rate than a read does, though it changes nothing. */
  readonly costly?: true;
  /**
   * Goes on when the account's changes of the month are used up, as every DELETE does: it removes for good, or appends
   * nothing to the account's record.
   */
  readonly beyondQuota?: true;
  /**
   * Changes refs as a push does, and costs as much. Its handler counts it, when it knows the refs; its body may be
   * larger than others, and names in `expected` what `If-Match` would.
   */
  readonly push?: true;
  /** Takes its JSON also as the first part of `multipart/form-data`, before contents (apps/api/sent-parts.ts). */
  readonly parts?: true;
  /** Served, but absent from the OpenAPI document. A GET of this kind changes state, so it has no HEAD. */
  readonly unlisted?: true;
  /** The schemas of successful answers by status; null for an answer without a body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  /**
   * What the document shows as the body, where the body's schema takes combinations that the service always refuses.
   */
  readonly offered?: z.ZodType;
  /** What the document shows as the query, where the route takes a parameter that only the description tells. */
  readonly offeredQuery?: z.ZodObject;
  /** Statuses whose body is application/octet-stream. */
  readonly bytes?: readonly number[];
  /** The media type of the body of 200, for a route whose answer is not JSON. */
  readonly text?: 'text/plain' | 'application/x-ndjson';
  /**
   * The route's own error statuses, beside those that its kind, requirement and schemas imply (apps/api/openapi.ts).
   */
  readonly problems: readonly number[];
  /** The schema of 409 and 422, where they say more than what is wrong. */
  readonly refusal?: z.ZodType;
}

/**
 * The schemas of a request's parts. Objects of a body's schema are strict: a member that they do not know is refused. A
 * body without a schema has no members, and a query without one must be empty.
 */
export interface Schemas {
  readonly params?: z.ZodType;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
}

/** The checked input of a request. */
export type InputOf<Given extends Schemas> = {
  readonly [Part in keyof Given]: Given[Part] extends z.ZodType ? z.output<Given[Part]> : never;
};

/** The unchecked input of a request. */
export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

export type Route = RouteFacts & { readonly schemas: Schemas } & (
    | {
        readonly kind: 'public';
        readonly requirement: null;
        readonly run: (call: PublicCall, raw: RawInput) => Promise<Outcome>;
      }
    | {
        readonly kind: 'account';
        readonly requirement: Requirement;
        readonly run: (call: AccountCall, raw: RawInput) => Promise<Outcome>;
      }
    | {
        readonly kind: 'repository';
        readonly requirement: Requirement;
        readonly run: (call: RepositoryCall, raw: RawInput) => Promise<Outcome>;
      }
  );

type Options<Call, Given extends Schemas> = RouteFacts & {
  readonly schemas: Given;
  /**
   * Of a route that changes a resource and answers it: reads the resource, to compare what the route cannot change
   * (apps/api/fixed-members.ts).
   */
  readonly standing?: (call: Call, input: InputOf<Given>) => Promise<Outcome>;
  readonly handle: (call: Call, input: InputOf<Given>) => Promise<Outcome>;
};

/** A route that takes no token. */
export function publicRoute<Given extends Schemas>(options: Options<PublicCall, Given>): Route {
  return { ...options, kind: 'public', requirement: null, run: checked(options) };
}

/** A route about the token's account. Without `grant` any valid token is enough. */
export function accountRoute<Given extends Schemas>(
  options: Options<AccountCall, Given> & {
    readonly grant?: Grant;
    readonly scope?: 'ALL_REPO';
    readonly onItself?: true;
  },
): Route {
  const { grant = null, scope = null, onItself = false } = options;
  return { ...options, kind: 'account', requirement: { grant, scope, onItself }, run: checked(options) };
}

/** A route about one repository. Its path starts with `/v1/repos/{username}/{name}`. */
export function repositoryRoute<Given extends Schemas>(
  options: Options<RepositoryCall, Given> & { readonly grant: Grant; readonly scope?: 'ALL_REPO' },
): Route {
  const requirement = { grant: options.grant, scope: options.scope ?? null, onItself: false };
  return { ...options, kind: 'repository', requirement, run: checked(options) };
}

/** Wraps the handler in the check of its input, which answers 422. */
function checked<Call, Given extends Schemas>(
  options: Options<Call, Given>,
): (call: Call, raw: RawInput) => Promise<Outcome> {
  const { schemas, standing, answers } = options;
  const known = Object.keys(schemas.query?.shape ?? {});
  const fixedMembers = standing === undefined ? NO_MEMBERS : fixedMembersOf(answers[200], schemas.body);
  return async (call, raw) => {
    const split = splitBody(raw.body, fixedMembers);
    const input = parseInput(schemas, known, { ...raw, body: split.body });
    if ('faults' in input) return problem(422, input.faults);
    if (standing !== undefined && split.fixed.length > 0) {
      const found = await standing(call, input.value);
      if ('refused' in found) return found;
      const faults = changedMembers(split, fixedMembers, found);
      if (faults.length > 0) return problem(422, faults);
    }
    return options.handle(call, input.value);
  };
}

const NO_MEMBERS: ReturnType<typeof fixedMembersOf> = new Map();

/** Returns the parsed input, or all faults of the path, query and body together. */
function parseInput<Given extends Schemas>(
  schemas: Given,
  knownParameters: readonly string[],
  raw: RawInput,
): { readonly value: InputOf<Given> } | { readonly faults: readonly FieldFault[] } {
  const value: Record<string, unknown> = {};
  const faults: FieldFault[] = [...unknownParameters(knownParameters, raw.query)];
  for (const part of PARTS) {
    const schema = schemas[part] ?? (part === 'body' && isObject(raw.body) ? NO_BODY : undefined);
    if (schema === undefined) continue;
    const result = check(schema, part === 'params' ? 'path' : part, raw[part]);
    if ('faults' in result) faults.push(...result.faults);
    else value[part] = result.value;
  }
  return faults.length > 0 ? { faults } : { value: value as InputOf<Given> };
}

const PARTS = ['params', 'query', 'body'] as const;
/** For a route that takes no body: clients send an empty object, or nothing. */
const NO_BODY = z.strictObject({});

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A parameter that is ignored would let a client with a misspelt one take the wrong answer for the right one. */
function unknownParameters(known: readonly string[], query: unknown): readonly FieldFault[] {
  if (typeof query !== 'object' || query === null) return [];
  const unknown = Object.keys(query).filter((name) => !known.includes(name));
  // Every request comes here, and few have a fault.
  if (unknown.length === 0) return [];
  const expected = known.length === 0 ? 'no query parameters' : `only ${known.map((name) => `\`${name}\``).join(', ')}`;
  return unknown.slice(0, UNKNOWN_NAMED_MAX).map((name) => ({
    loc: ['query', namedStep(name)],
    msg: `Unknown parameter: this route takes ${expected}`,
    type: 'unrecognized_keys',
  }));
}
