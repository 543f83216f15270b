/**
 * What a route is: everything the transport enforces and the OpenAPI document says, in one value.
 *
 * Must stay true: no handler checks permissions; a route states its requirement, and admission enforces it
 * before the handler runs and again whenever a guarded append lost its race.
 */
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import type { Grant, Scope } from '../../core/kernel/grants.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import type { Bearer } from '../../core/use-cases/authenticate.ts';
import type { FoundRepository, RepositoryCommandOrigin } from '../../core/use-cases/accounts/repositories.ts';
import type { ApiServices } from './services.ts';
import { type Answer, type FieldFault, problem } from './http/answer.ts';
import { check } from './http/input.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What a token must hold. A repository in the path must be in sight besides. */
export interface Requirement {
  /** Null: any valid token. */
  readonly grant: Grant | null;
  /** Null: either scope. */
  readonly scope: Extract<Scope, 'ALL_REPO'> | null;
  /** Whether a token may always do this to itself: the path's `id` is its own. */
  readonly onItself: boolean;
}

export type Outcome = Answer | { readonly refused: Refusal };

/** What a request without a token brings. */
export interface PublicCall {
  readonly context: ApiServices;
  readonly request: IncomingMessage;
  readonly requestId: string;
  /** Path and query as the client sent them. */
  readonly target: string;
}

/** A request whose token was found valid, and passed the route's requirement. */
export interface AccountCall extends PublicCall {
  readonly bearer: Bearer;
  /** The log's head when the request came: what it may rely on having seen. */
  readonly position: LogPosition;
  /** Who asks, for an append; it is guarded by the token and by the route's requirement. */
  readonly origin: () => Promise<RepositoryCommandOrigin>;
}

/** A request about a repository that its token sees. */
export interface RepositoryCall extends AccountCall {
  readonly repository: FoundRepository;
}

export interface RouteFacts {
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly method: Method;
  /** As OpenAPI writes it: `/v1/repos/{username}/{name}`. A last parameter `{path}` takes slashes too. */
  readonly path: string;
  /** Served, and absent from the document. A GET of this kind changes something, so there is no HEAD. */
  readonly unlisted?: true;
  /** The JSON of success by status; null for one without a body. */
  readonly answers: Readonly<Record<number, z.ZodType | null>>;
  /** Statuses whose body may also be application/octet-stream. */
  readonly bytes?: readonly number[];
  /** Statuses that this route answers beside those of every route with its requirement. */
  readonly problems: readonly number[];
}

/** The schemas of what a request carries; what has none is not looked at. */
export interface Schemas {
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

/** What a request carries, checked. */
export type InputOf<Given extends Schemas> = {
  readonly [Part in keyof Given]: Given[Part] extends z.ZodType ? z.output<Given[Part]> : never;
};

/** What came with the request, unchecked. */
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
  readonly handle: (call: Call, input: InputOf<Given>) => Promise<Outcome>;
};

/** A route that takes no token. */
export function publicRoute<Given extends Schemas>(options: Options<PublicCall, Given>): Route {
  return { ...options, kind: 'public', requirement: null, run: checked(options) };
}

/** A route about the token's account. `grant` absent: any valid token. */
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

/** A route about one repository, whose path starts `/v1/repos/{username}/{name}`. */
export function repositoryRoute<Given extends Schemas>(
  options: Options<RepositoryCall, Given> & { readonly grant: Grant },
): Route {
  const requirement = { grant: options.grant, scope: null, onItself: false };
  return { ...options, kind: 'repository', requirement, run: checked(options) };
}

/** The handler behind the check of its input. */
function checked<Call, Given extends Schemas>(
  options: Options<Call, Given>,
): (call: Call, raw: RawInput) => Promise<Outcome> {
  return async (call, raw) => {
    const input = parseInput(options.schemas, raw);
    return 'faults' in input ? problem(422, input.faults) : options.handle(call, input.value);
  };
}

/** What the schemas make of the request, or all faults of its path, query and body at once. */
function parseInput<Given extends Schemas>(
  schemas: Given,
  raw: RawInput,
): { readonly value: InputOf<Given> } | { readonly faults: readonly FieldFault[] } {
  const value: Record<string, unknown> = {};
  const faults: FieldFault[] = [];
  for (const part of PARTS) {
    const schema = schemas[part];
    if (schema === undefined) continue;
    const result = check(schema, part === 'params' ? 'path' : part, raw[part]);
    if ('faults' in result) faults.push(...result.faults);
    else value[part] = result.value;
  }
  return faults.length > 0 ? { faults } : { value: value as InputOf<Given> };
}

const PARTS = ['params', 'query', 'body'] as const;
