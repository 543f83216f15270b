/**
 * The OpenAPI 3.1 document, made from the table of routes and the same schemas that check requests.
 *
 * Invariants: the document lists every answer of a route, errors included, each with its schema.
 */
import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { inSharedForms, isNode, type Node, rewritten } from './document-forms.ts';
import { IDEMPOTENCY_KEY_LENGTH_MAX } from './http/idempotency-key.ts';
import { routerPath, slashedParameter } from './http/targets.ts';
import type { Route } from './route.ts';
import { ERROR } from './schemas/common.ts';
import { JSON_PART } from './schemas/new-commits.ts';

const PROBLEMS: Readonly<Record<number, string>> = {
  304: 'What the client has is current (If-None-Match)',
  308: 'The repository has another name now, which `Location` has: send the request there',
  400: 'The request is not well formed: HTTP headers, content type or JSON',
  401: 'No access token, or one that is malformed, unknown, expired or revoked',
  403: 'The token lacks the grant or the scope that the text names, or a quota or limit is reached',
  404: 'Not found, or out of the sight of this token',
  408: 'The body took too long to arrive',
  409: 'The name is taken, or something else has changed since it was read',
  413: 'The body is larger than 1 MiB, than 8 MiB where it changes refs, or than 64 KiB where no token is needed, it holds too many values, or one of its parts is larger than 64 MiB',
  416: 'The range lies outside the file',
  422: 'The input does not fit, or a rule of the service refuses it',
  429: 'Too often, too many at the same time, or the rate of the token or its account is used up: try again after the seconds of Retry-After',
  500: 'What the service holds was changed or lost, which no retry cures: its operator must act',
  503: 'The service cannot answer now: try again after the seconds of Retry-After',
};

/** A route's schema in the form that Fastify and the OpenAPI generator take. */
export interface DocumentedSchema {
  readonly [part: string]: unknown;
}

export function documentedSchema(route: Route): DocumentedSchema {
  if (route.unlisted === true) return { hide: true };
  const { operationId, tag, summary, description, schemas } = route;
  const { params } = schemas;
  const query = route.offeredQuery ?? schemas.query;
  const body = route.offered ?? schemas.body;
  return {
    operationId,
    tags: [tag],
    summary,
    description: [description, requirementText(route)].filter((text) => text !== undefined).join('\n\n'),
    security: route.kind === 'public' ? [] : [{ token: [] }],
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { querystring: query }),
    ...(body === undefined ? {} : { body }),
    ...(route.push === true ? { headers: PUSH_HEADERS } : {}),
    response: { ...successes(route), ...problems(route) },
  };
}

/** Which headers of its own a request for a change of refs has. */
const PUSH_HEADERS = z.object({
  'Idempotency-Key': z
    .string()
    .meta({
      description: `Of your choice, with up to ${IDEMPOTENCY_KEY_LENGTH_MAX} printable characters. A repeat within 24 hours changes nothing and answers what the first request changed, with \`Idempotent-Replayed: true\`. Another body with the key is 422; while a request with it is under way, others are 409 with \`code\` \`key-in-use\`.`,
    })
    .optional(),
});

function requirementText(route: Route): string | undefined {
  if (route.requirement === null) return undefined;
  const { grant, scope, onItself } = route.requirement;
  const needed = [grant === null ? 'any valid token' : `grant \`${grant}\``];
  if (scope !== null) needed.push(`scope \`${scope}\``);
  if (route.kind === 'repository') needed.push('a scope that includes the repository');
  return `Needs ${needed.join(', ')}${onItself ? '; nothing for the token that is asking' : ''}.`;
}

function successes(route: Route): Record<string, unknown> {
  if (route.text !== undefined)
    return { 200: { description: 'Done', content: { [route.text]: { schema: z.string() } } } };
  const bytes = (route.bytes ?? []).map((status): [string, unknown] => [
    String(status),
    {
      description: status === 206 ? 'The requested range' : 'Done',
      content: { 'application/octet-stream': { schema: BYTES_OF_A_FILE } },
    },
  ]);
  const json = Object.entries(route.answers).map(([status, schema]): [string, unknown] => [
    status,
    schema === null
      ? z.null().meta({ description: 'Done' })
      : { description: 'Done', content: { 'application/json': { schema } } },
  ]);
  return Object.fromEntries([...json, ...bytes]);
}

const BYTES_OF_A_FILE = z.string().meta({ wire: { type: 'string', format: 'binary' } });

function problems(route: Route): Record<string, unknown> {
  const takesInput = route.schemas.query !== undefined || route.schemas.body !== undefined;
  const statuses = new Set([
    400,
    ...(route.kind === 'public' ? [] : [401, 429, 503]),
    ...(route.requirement?.grant == null ? [] : [403]),
    ...(route.kind === 'repository' ? [308, 404] : []),
    ...(route.schemas.body === undefined ? [] : [408, 413, 429, 503]),
    ...(takesInput ? [422] : []),
    ...route.problems,
  ]);
  const described = [...statuses].map((status): [string, unknown] => [
    String(status),
    status === 304
      ? z.null().meta({ description: PROBLEMS[status] ?? '' })
      : { description: PROBLEMS[status] ?? '', content: { 'application/json': { schema: schemaOf(route, status) } } },
  ]);
  return Object.fromEntries(described);
}

function schemaOf({ refusal }: Route, status: number): z.ZodType {
  return refusal !== undefined && (status === 409 || status === 422) ? refusal : ERROR;
}

interface Written {
  readonly zodSchema: z.core.$ZodTypes;
  readonly jsonSchema: { [keyword: string]: unknown };
}

/**
 * Replaces a schema by its `wire` form if it has one (apps/api/schemas/common.ts). Answers stay open, for members that
 * they get later; the objects of requests are strict. No value fits two alternatives of a union.
 */
function override({ zodSchema: { _zod }, jsonSchema }: Written): void {
  const { wire, anyOf } = jsonSchema;
  delete jsonSchema['moves'];
  if (_zod.def.type === 'union' && anyOf !== undefined) {
    delete jsonSchema['anyOf'];
    Object.assign(jsonSchema, { oneOf: anyOf });
  }
  // The names of members are texts anyway.
  if (_zod.def.type === 'record') delete jsonSchema['propertyNames'];
  if (_zod.def.type === 'object' && _zod.def.catchall === undefined) delete jsonSchema['additionalProperties'];
  if (typeof wire !== 'object' || wire === null) return;
  const { description } = jsonSchema;
  for (const keyword of Object.keys(jsonSchema)) delete jsonSchema[keyword];
  Object.assign(jsonSchema, description === undefined ? {} : { description }, wire);
}

/** The options of the generator for those routes. */
export function swaggerOptions(version: string, routes: readonly Route[]): FastifyDynamicSwaggerOptions {
  const slashed = new Map(routes.map(({ path }) => [routerPath(path), slashedParameter(path)]));
  const idsOf = (some: readonly Route[]) => new Set(some.map(({ operationId }) => operationId));
  const leavable = idsOf(routes.filter(takesNoBodyToo));
  const inParts = idsOf(routes.filter(({ parts }) => parts === true));
  const zodToJsonConfig = { override };
  const described = createJsonSchemaTransform({ zodToJsonConfig });
  const named = createJsonSchemaTransformObject({ zodToJsonConfig });
  return {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Strata',
        version,
        description:
          'Hosts Git repositories. Requests and answers are JSON in UTF-8; times are RFC 3339 in UTC, ids are UUIDs. A body holds no member that its operation does not take (422). An update also takes the other members of its resource if they have the value that stands, so that a client may read a resource, change it and write it back. Every answer carries `X-Request-Id`, and to a token `X-RateLimit-Limit`, `-Remaining` and `-Reset`.',
      },
      components: {
        securitySchemes: {
          token: { type: 'http', scheme: 'bearer', description: 'An access token: `strata_...`' },
        },
      },
    },
    transform: (route) => {
      const documented = described(route);
      return { ...documented, url: documented.url.replace(/\*$/, `:${slashed.get(documented.url) ?? ''}`) };
    },
    transformObject: (document) =>
      inSharedForms(
        withRateHeaders(
          withParts(withOptionalBodies(withPlainNames(withoutUnused(named(document))), leavable), inParts),
        ),
      ),
  };
}

/**
 * The generator writes each shared schema twice, for requests and for answers; this removes the unreferenced ones. It
 * orders the others by name: the generator has them in the order in which modules were loaded.
 */
function withoutUnused(document: object): Node {
  const text = JSON.stringify(document);
  const used = (name: string): boolean => text.includes(`"#/components/schemas/${name}"`);
  const kept = rewritten(document, (node, key) => {
    if (key !== 'schemas') return node;
    const referenced = Object.entries(node).filter(([name]) => used(name));
    return Object.fromEntries(referenced.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  });
  // A removed schema may have held the only reference to another one.
  return JSON.stringify(kept) === text ? kept : withoutUnused(kept);
}

/** The generator ends the name of a schema of requests in `Input`; most have no namesake among those of answers. */
function withPlainNames(document: Node): Node {
  const text = JSON.stringify(document);
  const names = new Set(Array.from(text.matchAll(/#\/components\/schemas\/(\w+)"/g), ([, name]) => name));
  let plain = text;
  for (const name of names) {
    const short = name?.replace(/Input$/, '') ?? '';
    if (name === undefined || short === name || names.has(short)) continue;
    plain = plain.replaceAll(`/schemas/${name}"`, `/schemas/${short}"`).replaceAll(`"${name}":`, `"${short}":`);
  }
  const renamed: unknown = JSON.parse(plain);
  if (!isNode(renamed)) throw new TypeError('The document is an object');
  return renamed;
}

function takesNoBodyToo({ schemas }: Route): boolean {
  return schemas.body?.safeParse(undefined).success === true;
}

/** The generator requires every body, also one that a request of these operations may leave out. */
function withOptionalBodies(document: Node, operations: ReadonlySet<string>): Node {
  return withBodies(document, operations, (body) => ({ ...body, required: false }));
}

/** These operations take their JSON also as a part beside contents. Clients that know one form take the first. */
function withParts(document: Node, operations: ReadonlySet<string>): Node {
  return withBodies(document, operations, (body) => {
    const content = isNode(body['content']) ? body['content'] : {};
    return { ...body, content: { ...content, [FORM_TYPE]: IN_PARTS } };
  });
}

export const FORM_TYPE = 'multipart/form-data';
/**
 * The JSON is bytes as well, and has no `encoding`: openapi-generator makes no model of a schema that only forms have,
 * and then looks for it, and takes no encoding of what is no property.
 */
const IN_PARTS = {
  schema: {
    type: 'object',
    description: `\`${JSON_PART}\` is the same JSON; each of the others is the content of the change that names it.`,
    required: [JSON_PART],
    additionalProperties: { type: 'string', format: 'binary' },
  },
};

function withBodies(document: Node, operations: ReadonlySet<string>, change: (body: Node) => Node): Node {
  return rewritten(document, (node) => {
    const { operationId, requestBody } = node;
    if (typeof operationId !== 'string' || !operations.has(operationId) || !isNode(requestBody)) return node;
    return { ...node, requestBody: change(requestBody) };
  });
}

const header = (description: string): object => ({ description, schema: { type: 'integer' } });

/** The headers of 429. Every answer to a token has all of them but the first. */
const RATE_HEADERS = {
  'Retry-After': header('Seconds after which to try again'),
  'X-RateLimit-Limit': header('Points of the token within a minute; none without a token'),
  'X-RateLimit-Remaining': header("What is left of them, or of the account's if that is less"),
  'X-RateLimit-Reset': header('When the minute ends, in seconds since 1970'),
};

/** The generator leaves headers out. */
function withRateHeaders(document: Node): Node {
  return rewritten(document, (node, key) => (key === '429' ? { ...node, headers: RATE_HEADERS } : node));
}
