/**
 * Requests to the REST API, made from its OpenAPI document: paths, queries and bodies as their schemas have them, each
 * right or changed.
 */
import type { Dice } from '../support/seeded.ts';
import type { Draft } from './heads.ts';
import { EMPTY, FILLED, type Making, type Operation, PUSHED, type Schema } from './making.ts';
import { hostileText, mutateBytes, mutateText } from './mutations.ts';

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> };
}

interface DocumentedOperation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** Returns the operations of a document, and the one that it does not list. */
export function operationsOf(text: string): readonly Operation[] {
  const { paths, components } = JSON.parse(text) as Document;
  const schemas = components?.schemas ?? {};
  const listed = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId, parameters = [], requestBody }]) => ({
      ...{ operationId, method: method.toUpperCase(), path, schemas },
      query: parameters.filter((parameter) => parameter.in === 'query'),
      body: requestBody?.content['application/json']?.schema ?? null,
    })),
  );
  const poll: Operation = {
    ...{ operationId: 'pollDeviceSession', method: 'GET', path: '/v1/auth/sessions/{id}/poll', schemas, body: null },
    query: [{ name: 'secret_token', schema: { type: 'string' } }],
  };
  return [...listed, poll];
}

/** Reads get further than changes, and may be asked more often without filling the accounts. */
const READ_SHARE = 0.5;

/** One operation by chance. */
export function restInput(making: Making): Draft {
  const { dice, scene } = making;
  const reads = scene.operations.filter(({ method }) => method === 'GET');
  return operationDraft(making, dice.pick(dice.chance(READ_SHARE) ? reads : scene.operations));
}

export function operationDraft(making: Making, operation: Operation): Draft {
  const { dice, account, isMutated } = making;
  const odd = isMutated && dice.chance(0.3);
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = parameterValue(making, operation, name);
    return odd && dice.chance(0.5) ? escaped(dice, mutateText(dice, value)) : escaped(dice, value);
  });
  const query = queryText(making, operation);
  const headers: (readonly [string, string])[] = [['Authorization', `Bearer ${account.token}`]];
  const method = isMutated && operation.method === 'GET' && dice.chance(0.1) ? 'HEAD' : operation.method;
  if (operation.body === null) {
    if (!isMutated || !dice.chance(0.05)) return { method, target: path + query, headers, body: null };
    return { method, target: path + query, headers, body: Buffer.from(hostileText(dice)) };
  }
  headers.push(['Content-Type', 'application/json']);
  return { method, target: path + query, headers, body: jsonBody(making, operation, operation.body) };
}

function escaped(dice: Dice, value: string): string {
  // Unescaped bytes are sent too, but none that ends the request line.
  if (dice.chance(0.97)) return encodeURIComponent(value.toWellFormed());
  return Buffer.from(value)
    .toString('latin1')
    .replaceAll(/[\s\0]/g, '%20');
}

function parameterValue({ scene, account, dice }: Making, { path, method }: Operation, name: string): string {
  // What every other input needs is deleted by mutations of names alone.
  const repositories = method === 'DELETE' ? [`made-${dice.below(50)}`] : [FILLED, FILLED, FILLED, EMPTY, PUSHED];
  switch (name) {
    case 'username':
      return account.username;
    case 'name':
      return dice.pick(repositories);
    case 'branch':
      return dice.pick(['main', 'dev', 'feature/é', ...scene.refs]);
    case 'hexsha':
      return dice.pick(scene.objects.commit);
    case 'archive':
      return dice.pick(['main.tar.gz', 'dev.zip', 'v1.tar.gz', `${dice.pick(scene.objects.commit)}.zip`, 'main.rar']);
    case 'comparison':
      return dice.pick([
        'main...dev',
        'dev..main',
        'v1...main',
        `${dice.pick(scene.objects.commit)}...main`,
        'main',
        '..',
      ]);
    case 'path':
      return dice.pick(['file', 'folder', 'folder/', 'folder/file-3', 'folder/file-3/x', '']);
    default: {
      const kind = path.split('/').find((part) => account.ids[part] !== undefined) ?? '';
      const known = account.ids[kind] ?? [];
      if (known.length > 0 && (method !== 'DELETE' || dice.chance(0.02))) return dice.pick(known);
      return `${dice
        .below(2 ** 31)
        .toString(16)
        .padStart(8, '0')}-0000-4000-8000-000000000000`;
    }
  }
}

function queryText(making: Making, { query, schemas }: Operation): string {
  const { dice, isMutated } = making;
  const pairs: string[] = [];
  for (const { name, schema } of query) {
    if (!dice.chance(0.4)) continue;
    const value = String(plain(sample(making, schema, schemas, name)));
    pairs.push(`${name}=${escaped(dice, isMutated && dice.chance(0.5) ? mutateText(dice, value) : value)}`);
  }
  if (isMutated && dice.chance(0.1))
    pairs.push(`${escaped(dice, hostileText(dice))}=${escaped(dice, hostileText(dice))}`);
  if (isMutated && dice.chance(0.1) && pairs.length > 0) pairs.push(dice.pick(pairs), '&', '=');
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** JSON before it is written. An object may hold a name twice, and `raw` is text that need not be JSON. */
type Node =
  | null
  | boolean
  | number
  | string
  | readonly Node[]
  | { readonly members: readonly (readonly [name: string, value: Node])[] }
  | { readonly raw: string };

const RAW: readonly string[] = [
  '1e400',
  '-0',
  '01',
  '1.',
  'NaN',
  "'x'",
  '"\\ud800"',
  '"\\u0000"',
  '"\\x"',
  '{',
  ']',
  ',',
  '',
];
const TEXT_LENGTH_MAX = 2_000_000;
const DEPTHS: readonly number[] = [10, 1_000, 100_000];

function jsonBody(making: Making, operation: Operation, schema: Schema): Buffer {
  const { dice, isMutated } = making;
  let node = sample(making, schema, operation.schemas, '');
  if (!isMutated) return Buffer.from(written(node));
  for (let rounds = dice.below(3); rounds > 0; rounds -= 1) node = mutateNode(dice, node);
  const body = Buffer.from(written(node));
  return dice.chance(0.2) ? mutateBytes(dice, body) : body;
}

function mutateNode(dice: Dice, node: Node): Node {
  if (node !== null && typeof node === 'object' && dice.chance(0.7)) {
    if ('members' in node && node.members.length > 0) return mutateMembers(dice, node.members);
    if (Array.isArray(node) && node.length > 0) {
      const at = dice.below(node.length);
      return node.map((item: Node, index) => (index === at ? mutateNode(dice, item) : item));
    }
  }
  return hostileNode(dice, node);
}

function mutateMembers(dice: Dice, members: readonly (readonly [string, Node])[]): Node {
  const at = dice.below(members.length);
  const [name = '', value = null] = members[at] ?? [];
  switch (dice.below(6)) {
    case 0:
      return { members: members.toSpliced(at, 1) };
    case 1:
      return { members: [...members, [name, hostileNode(dice, value)]] };
    case 2:
      return { members: [...members, [hostileText(dice), hostileNode(dice, value)]] };
    default:
      return { members: members.with(at, [name, mutateNode(dice, value)]) };
  }
}

function hostileNode(dice: Dice, node: Node): Node {
  switch (dice.below(9)) {
    case 0:
      return null;
    case 1:
      return dice.pick([true, 0, -1, 1.5, 2 ** 31, 2 ** 53, 1e308, -1e308]);
    case 2:
      return { raw: dice.pick(RAW) };
    case 3: {
      const depth = dice.pick(DEPTHS);
      return { raw: dice.chance(0.5) ? '['.repeat(depth) + ']'.repeat(depth) : '{"a":'.repeat(depth) };
    }
    case 4:
      return [node, node];
    case 5:
      return { members: [[hostileText(dice), node]] };
    case 6:
      return Array.from({ length: dice.pick([0, 2, 200, 10_000, 20_000]) }, () => node);
    default:
      return typeof node === 'string' ? mutateText(dice, node) : hostileText(dice);
  }
}

function written(node: Node): string {
  if (node === null || typeof node !== 'object') return JSON.stringify(node);
  if ('raw' in node) return node.raw;
  if ('members' in node)
    return `{${node.members.map(([name, value]) => `${JSON.stringify(name)}:${written(value)}`).join(',')}}`;
  const [first] = node;
  // A long array of one value is written once, and is no longer than the service would read.
  if (node.length > 100 && first !== undefined) {
    const item = written(first);
    return `[${Array(Math.min(node.length, Math.ceil(TEXT_LENGTH_MAX / item.length)))
      .fill(item)
      .join(',')}]`;
  }
  return `[${node.map(written).join(',')}]`;
}

function plain(node: Node): unknown {
  return node !== null && typeof node === 'object' ? written(node) : node;
}

/** A value that fits the schema, most often. */
function sample(making: Making, schema: Schema, schemas: Readonly<Record<string, Schema>>, name: string): Node {
  const { dice } = making;
  if (schema.$ref !== undefined)
    return sample(making, schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {}, schemas, name);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return sample(making, dice.pick(choices), schemas, name);
  const [part] = schema.allOf ?? [];
  if (part !== undefined) return sample(making, part, schemas, name);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return dice.pick(schema.enum);
  const type = typeof schema.type === 'object' ? dice.pick(schema.type) : (schema.type ?? 'string');
  switch (type) {
    case 'object': {
      const { properties = {}, required = [] } = schema;
      const taken = Object.entries(properties).filter(([key]) => required.includes(key) || dice.chance(0.5));
      return { members: taken.map(([key, value]) => [key, sample(making, value, schemas, key)] as const) };
    }
    case 'array':
      return Array.from({ length: 1 + dice.below(2) }, () => sample(making, schema.items ?? {}, schemas, name));
    case 'integer':
    case 'number':
      return Math.min(schema.maximum ?? 100, (schema.minimum ?? 0) + dice.below(5));
    case 'boolean':
      return dice.chance(0.5);
    case 'null':
      return null;
    default:
      return sampleText(making, schema, name);
  }
}

function sampleText({ dice, scene, account }: Making, schema: Schema, name: string): string {
  if (schema.format === 'date-time') return dice.pick(['2026-11-20T10:00:00Z', '2099-01-01T00:00:00.000Z']);
  const ids = Object.values(account.ids).flat();
  if (schema.format === 'uuid' || /_ids?$/.test(name)) return dice.pick(ids);
  switch (name) {
    case 'name':
      return `made-${dice.below(50)}`;
    case 'ref':
    case 'default_branch':
      return dice.pick(['main', 'dev', dice.pick(scene.refs), dice.pick(scene.objects.commit)]);
    case 'path':
      return dice.pick(['file', 'folder', 'folder/file-3']);
    case 'month':
      return '2026-11';
    // Nothing may leave the loopback interface.
    case 'url':
    case 'endpoint':
    case 'issuer':
      return dice.pick(['https://127.0.0.1:9/hook', 'https://localhost:9', 'https://[::1]:9/a?b=c']);
    case 'secret_token':
    case 'id_token':
      return dice.pick(['eyJhbGciOiJSUzI1NiJ9.e30.AAAA', account.token, 'a.b.c']);
    default: {
      const example = schema.examples?.find((value) => typeof value === 'string');
      return example ?? dice.pick(['text', 'a longer text', hostileText(dice)]);
    }
  }
}
