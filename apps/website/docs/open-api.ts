/**
 * The OpenAPI document in the form that the pages about the API show: routes by subject, fields as rows.
 *
 * Invariants: everything shown comes from the document that the API serves, so the pages cannot say something else.
 * A keyword that this file does not know stops the parse instead of leaving a rule out.
 */
import { z } from 'zod';
import { OBJECT_ID_DIGITS, OBJECT_ID_PATTERN } from '../../../core/kernel/ids.ts';

export interface SchemaNode {
  readonly $ref?: string | undefined;
  readonly type?: string | readonly string[] | undefined;
  readonly format?: string | undefined;
  readonly pattern?: string | undefined;
  readonly description?: string | undefined;
  readonly enum?: readonly (string | null)[] | undefined;
  readonly const?: string | number | boolean | undefined;
  readonly default?: unknown;
  readonly examples?: readonly unknown[] | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly minLength?: number | undefined;
  readonly maxLength?: number | undefined;
  readonly minItems?: number | undefined;
  readonly maxItems?: number | undefined;
  readonly properties?: Readonly<Record<string, SchemaNode>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: false | object | undefined;
  readonly items?: SchemaNode | undefined;
  readonly oneOf?: readonly SchemaNode[] | undefined;
}

const SCHEMA: z.ZodType<SchemaNode> = z.lazy(() =>
  z.strictObject({
    $ref: z.string().optional(),
    type: z.union([z.string(), z.array(z.string())]).optional(),
    format: z.string().optional(),
    pattern: z.string().optional(),
    description: z.string().optional(),
    enum: z.array(z.string().nullable()).optional(),
    const: z.union([z.string(), z.number(), z.boolean()]).optional(),
    default: z.unknown().optional(),
    examples: z.array(z.unknown()).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    minLength: z.number().optional(),
    maxLength: z.number().optional(),
    minItems: z.number().optional(),
    maxItems: z.number().optional(),
    properties: z.record(z.string(), SCHEMA).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.union([z.literal(false), z.object({})]).optional(),
    items: SCHEMA.optional(),
    oneOf: z.array(SCHEMA).optional(),
    // Said in words by the description.
    not: z.unknown().optional(),
    maxProperties: z.number().optional(),
    propertyNames: z.unknown().optional(),
  }),
);

const CONTENT = z.record(z.string(), z.object({ schema: SCHEMA }));
const OPERATION = z.object({
  operationId: z.string(),
  summary: z.string(),
  description: z.string().optional(),
  tags: z.tuple([z.string()]),
  security: z.array(z.unknown()),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.string(),
        required: z.boolean().optional(),
        description: z.string().optional(),
        example: z.unknown().optional(),
        schema: SCHEMA,
      }),
    )
    .default([]),
  requestBody: z.object({ content: CONTENT }).optional(),
  responses: z.record(z.string(), z.object({ description: z.string(), content: CONTENT.optional() })),
});
const DOCUMENT = z.object({
  info: z.object({ version: z.string(), description: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), OPERATION)),
  components: z.object({ schemas: z.record(z.string(), SCHEMA) }),
});

/** One line of a table of fields. */
export interface FieldRow {
  /** Dotted, with `[]` for the entries of a list: `commits[].author.name`. */
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly text: string;
}

/** The fields of an object; several for one of several objects, each with what tells them apart. */
export interface FieldTable {
  /** The name in words of one of several alternatives. */
  readonly name: string | null;
  readonly title: string | null;
  readonly rows: readonly FieldRow[];
}

export interface ApiAnswer {
  readonly status: string;
  readonly text: string;
  /** The media type of a body that is not, or not always, JSON. */
  readonly media: string | null;
  readonly tables: readonly FieldTable[];
}

export interface ApiOperation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly paragraphs: readonly string[];
  readonly needsToken: boolean;
  readonly parameters: readonly FieldRow[];
  readonly body: readonly FieldTable[];
  /** A body that the route takes, of the examples and defaults of its fields; null if it takes none. */
  readonly exampleBody: string | null;
  readonly successes: readonly ApiAnswer[];
  readonly problems: readonly { readonly status: string; readonly text: string }[];
}

export interface ApiSubject {
  readonly name: string;
  /** Its part of the page's path. */
  readonly slug: string;
  readonly operations: readonly ApiOperation[];
}

export interface ApiReference {
  readonly version: string;
  readonly text: string;
  readonly subjects: readonly ApiSubject[];
}

export function readOpenApi(document: object): ApiReference {
  const { info, paths, components } = DOCUMENT.parse(document);
  const schemas = new Schemas(components.schemas);
  const subjects = new Map<string, ApiOperation[]>();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const [tag] = operation.tags;
      const listed = subjects.get(tag) ?? [];
      listed.push(operationOf(schemas, method.toUpperCase(), path, operation));
      subjects.set(tag, listed);
    }
  }
  return {
    version: info.version,
    text: info.description,
    subjects: [...subjects].flatMap(([name, operations]) => partsOf(name, operations)),
  };
}

/** Operations on one page, which stays small. Internal: those beyond are on the next page of the subject. */
const PAGE_OPERATIONS_MAX = 10;

function partsOf(name: string, operations: readonly ApiOperation[]): readonly ApiSubject[] {
  const parts: ApiSubject[] = [];
  for (let first = 0; first < operations.length; first += PAGE_OPERATIONS_MAX) {
    const part = first === 0 ? name : `${name} ${parts.length + 1}`;
    const shown = operations.slice(first, first + PAGE_OPERATIONS_MAX);
    parts.push({ name: part, slug: slugOf(part), operations: shown });
  }
  return parts;
}

function slugOf(name: string): string {
  return name.toLowerCase().replaceAll(' ', '-');
}

function operationOf(
  schemas: Schemas,
  method: string,
  path: string,
  operation: z.output<typeof OPERATION>,
): ApiOperation {
  const { operationId, summary, description = '', parameters, requestBody, responses } = operation;
  const body = requestBody?.content['application/json']?.schema;
  const answers = Object.entries(responses).map(([status, { description: text, content }]) => {
    const schema = content?.['application/json']?.schema;
    const media = Object.keys(content ?? {}).find((type) => type !== 'application/json') ?? null;
    return { status, text, media, tables: schema === undefined ? [] : schemas.tablesOf(schema) };
  });
  return {
    id: operationId,
    method,
    path,
    summary,
    paragraphs: description.split('\n\n').filter((text) => text !== ''),
    needsToken: operation.security.length > 0,
    // Those of the path first, as they stand in it.
    parameters: parameters
      .toSorted((a, b) => a.in.localeCompare(b.in))
      .map(({ name, required = false, description: text = '', schema }) => ({
        name,
        type: schemas.typeOf(schema),
        required,
        text,
      })),
    body: body === undefined ? [] : schemas.tablesOf(body),
    exampleBody: body === undefined ? null : JSON.stringify(schemas.exampleOf(body)),
    successes: answers.filter(({ status }) => status.startsWith('2')),
    problems: answers.filter(({ status }) => !status.startsWith('2')),
  };
}

/** Deeper fields are left to the type of the field above them. Internal: no caller changes what the page documents. */
const DEPTH_MAX = 5;

class Schemas {
  readonly #named: Readonly<Record<string, SchemaNode>>;

  constructor(named: Readonly<Record<string, SchemaNode>>) {
    this.#named = named;
  }

  /** The fields of an object, or of each of several objects; none for anything else. */
  tablesOf(schema: SchemaNode): readonly FieldTable[] {
    const found = this.#resolve(schema);
    if (found.oneOf === undefined) return [{ name: null, title: null, rows: this.#rowsOf(found, '', 0) }];
    return found.oneOf.map((one) => {
      const type = this.#resolve(one).properties?.['type']?.const;
      return {
        name: wordsOf(one.$ref),
        title: type === undefined ? null : String(type),
        rows: this.#rowsOf(one, '', 0),
      };
    });
  }

  #rowsOf(schema: SchemaNode, prefix: string, depth: number): readonly FieldRow[] {
    const { properties = {}, required = [] } = this.#resolve(schema);
    if (depth > DEPTH_MAX) return [];
    return Object.entries(properties).flatMap(([name, field]) => {
      const full = `${prefix}${name}`;
      const own = this.#resolve(field);
      const text = field.description ?? own.description ?? '';
      const row = { name: full, type: this.typeOf(field), required: required.includes(name), text };
      return [row, ...this.#insideOf(own, full, depth)];
    });
  }

  /** The fields of an object or of a list's entries, also where it may be null or a text instead. */
  #insideOf(field: SchemaNode, name: string, depth: number): readonly FieldRow[] {
    for (const one of [field, ...(field.oneOf ?? [])]) {
      const schema = this.#resolve(one);
      if (schema.properties !== undefined) return this.#rowsOf(schema, `${name}.`, depth + 1);
      if (schema.items === undefined) continue;
      const rows = this.#rowsOf(schema.items, `${name}[].`, depth + 1);
      if (rows.length > 0) return rows;
    }
    return [];
  }

  /** What the field holds, in words: `list of UUID`, `text of 1 to 100 characters, or null`. */
  typeOf(schema: SchemaNode): string {
    const found = this.#resolve(schema);
    if (found.oneOf !== undefined) return unique(found.oneOf.map((one) => this.typeOf(one))).join(', or ');
    if (found.const !== undefined) return `\`${found.const}\``;
    if (found.enum !== undefined) return found.enum.map((value) => `\`${value}\``).join(', ');
    const types = [found.type ?? 'object'].flat();
    const words = unique(types.map((type) => this.#wordOf(type, found)));
    const usual = found.default === undefined ? '' : `; \`${JSON.stringify(found.default)}\` by default`;
    return `${words.join(', or ')}${usual}`;
  }

  #wordOf(type: string, schema: SchemaNode): string {
    const { items, minItems, maxItems, minimum, maximum } = schema;
    if (type === 'string') return textOf(schema);
    if (type === 'integer') return `number${boundsOf(minimum, maximum, ' of ')}`.trimEnd();
    if (type !== 'array') return type;
    return `list of ${boundsOf(minItems, maxItems, '')}${items === undefined ? 'anything' : this.typeOf(items)}`;
  }

  /** A value that fits: the fields' examples, else their defaults, else a made one. Optional fields are left out. */
  exampleOf(schema: SchemaNode): unknown {
    const found = this.#resolve(schema);
    if (found.examples?.[0] !== undefined) return found.examples[0];
    if (found.default !== undefined) return found.default;
    if (found.const !== undefined) return found.const;
    if (found.enum !== undefined) return found.enum[0];
    if (found.oneOf?.[0] !== undefined) return this.exampleOf(found.oneOf[0]);
    const [type = 'object'] = [found.type ?? 'object'].flat();
    if (type === 'object') return this.#exampleObject(found);
    if (type === 'array')
      return found.items === undefined || found.minItems === undefined ? [] : [this.exampleOf(found.items)];
    if (type === 'integer') return found.minimum ?? 0;
    if (type === 'boolean') return true;
    return type === 'null' ? null : 'text';
  }

  /** The required fields; the first one if none is. */
  #exampleObject({ properties = {}, required = [] }: SchemaNode): object {
    const fields = Object.entries(properties);
    const shown = required.length === 0 ? fields.slice(0, 1) : fields.filter(([name]) => required.includes(name));
    return Object.fromEntries(shown.map(([name, field]) => [name, this.exampleOf(field)]));
  }

  #resolve(schema: SchemaNode): SchemaNode {
    const name = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref ?? '')?.[1];
    if (name === undefined) return schema;
    const named = this.#named[name];
    if (named === undefined) throw new TypeError(`The document has no schema ${name}`);
    return this.#resolve(named);
  }
}

/** Returns the name of a schema in words: `new access token for all`. */
function wordsOf(reference: string | undefined): string | null {
  const name = reference?.split('/').at(-1);
  return name === undefined ? null : name.replaceAll(/(?!^)([A-Z])/g, ' $1').toLowerCase();
}

const TEXT_FORMATS: Readonly<Record<string, string>> = { uuid: 'UUID', 'date-time': 'time', binary: 'bytes' };

const OBJECT_ID = `^${OBJECT_ID_PATTERN}$`;

function textOf({ format = '', pattern, minLength, maxLength }: SchemaNode): string {
  if (pattern === OBJECT_ID) return `${OBJECT_ID_DIGITS} hex digits`;
  const bounds = boundsOf(minLength, maxLength, ' of ');
  return TEXT_FORMATS[format] ?? (bounds === '' ? 'text' : `text${bounds}characters`);
}

/** Numbers this large are no rule: they bound what JSON can hold. */
function boundsOf(min: number | undefined, max: number | undefined, before: string): string {
  const low = min === undefined || min <= -Number.MAX_SAFE_INTEGER ? null : min;
  const high = max === undefined || max >= Number.MAX_SAFE_INTEGER ? null : max;
  if (low !== null && high !== null) return `${before}${low} to ${high} `;
  if (high !== null) return `${before}at most ${high} `;
  return low !== null && low > 0 ? `${before}${low} or more ` : '';
}

function unique(words: readonly string[]): readonly string[] {
  return [...new Set(words)];
}
