/**
 * Every name that is stored or sent: names that the event log, the database, Temporal, metrics, clients, settings,
 * object stores or browsers keep, so that changing one breaks what exists.
 *
 * Invariants: the lists come from the code. A table that the program has is read from the table; a name that stands
 * where it is used is found by what carries it (a member of a stored object, a call of a library, a statement of SQL, a
 * type), not by the file that it stands in. A carrier that holds no constant name throws, so that none is missed.
 * Sentences for people (`detail`, lines of the log, help) are no names.
 *
 * Held by other tests, and not repeated here: the members of bodies of the API (apps/cli/openapi.json,
 * test/client-package), of stored events, log files and snapshots of accounts (test/golden), of manifests (the script
 * of docs/bucket-layout.md), the signals and histories of Temporal (test/workflows/temporal/replay.test.ts),
 * subcommands of `strata` (docs/cli.md).
 */
import type { Command } from 'commander';
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely';
import { logMigrations } from '../../adapters/postgres/migrate.ts';
import { createProgram } from '../../apps/admin/program.ts';
import { ROUTES } from '../../apps/api/routes.ts';
import { OUTAGES } from '../../apps/front-door/texts/outages.ts';
import { REFUSALS } from '../../apps/front-door/texts/refusals.ts';
import { GIT_ROUTES, LFS_ROUTES, PAST_GIT_ROUTES } from '../../apps/git-http/routes.ts';
import { PERIODIC } from '../../apps/server/background.ts';
import { WORKFLOWS } from '../../apps/server/workflows.ts';
import type { Site } from '../../apps/website/layout/room.ts';
import { ROOMS } from '../../apps/website/rooms.ts';
import { cookiesFor } from '../../apps/website/sessions/cookies.ts';
import { ACCOUNT_FOLD_SNAPSHOT_VERSION } from '../../core/audit/account-fold-snapshot.ts';
import { EVENT_CATALOGUE } from '../../core/catalogue.ts';
import { createModels, type ModelsOptions } from '../../projections/models.ts';
import { createRunnerTables } from '../../projections/runner/tables.ts';
import { cachesOf } from '../metrics/found-caches.ts';
import { metricsOf } from '../metrics/found-metrics.ts';
import { createValues, OPEN, type Values } from './source-values.ts';
import {
  child,
  children,
  isSyntax,
  nameOf,
  type Place,
  productSources,
  propertyNamed,
  type Sources,
} from './syntax.ts';

/** The lines of each file below test/golden/names: a group, and a name in it. */
export type StoredNames = Readonly<Record<string, readonly string[]>>;

interface Reader {
  readonly sources: Sources;
  readonly values: Values;
}

export async function storedNames(sources: Sources = productSources()): Promise<StoredNames> {
  const reader = { sources, values: createValues(sources) };
  const lists = {
    'event-log': eventLog(reader),
    database: await database(reader),
    temporal: temporal(reader),
    metrics: metrics(reader),
    api: api(reader),
    settings: settings(reader),
    'object-store': objectStore(reader),
    browser: browser(reader),
  };
  return Object.fromEntries(Object.entries(lists).map(([file, lines]) => [file, [...new Set(lines)].sort()]));
}

function grouped(group: string, names: Iterable<string>): string[] {
  const lines = [...names].map((name) => `${group} ${JSON.stringify(name).slice(1, -1)}`);
  if (lines.length === 0) throw new Error(`No name of the group "${group}" is found: what carries them has changed`);
  return lines;
}

function whereOf({ module, node }: Place): string {
  const start = typeof node['start'] === 'number' ? node['start'] : 0;
  return `${module.path}:${module.text.slice(0, start).split('\n').length}`;
}

/** Returns the names that an expression can be; throws if one of them is not constant. */
function constant({ values }: Reader, place: Place): readonly string[] {
  const names = values.of(place);
  if (names.includes(OPEN)) throw new Error(`${whereOf(place)}: this name cannot be read from the source`);
  return names;
}

function objects({ sources }: Reader, pattern: RegExp, ...keys: readonly string[]): readonly Place[] {
  const all = sources.nodes(pattern, 'ObjectExpression');
  return all.filter(({ node }) => keys.every((key) => propertyNamed(node, key) !== null));
}

function member(place: Place, key: string): Place {
  const node = propertyNamed(place.node, key);
  if (node === null) throw new Error(`${whereOf(place)}: no member ${key}`);
  return { ...place, node };
}

/**
 * Returns the arguments at an index of every call of a function of this name, or of a method. `beside` is what the
 * modules of such calls hold as well.
 */
function argumentsOf({ sources }: Reader, callee: string, index: number, beside = ''): readonly Place[] {
  const named = new RegExp(`\\b${callee}[(<]`);
  const modules = sources.holding(named, beside);
  const calls = modules.flatMap((module) =>
    [...module.nodes('CallExpression'), ...module.nodes('NewExpression')].map((node) => ({ module, node })),
  );
  return calls.flatMap((place) => {
    const called = child(place.node, 'callee');
    if (nameOf(called?.type === 'MemberExpression' ? child(called, 'property') : called) !== callee) return [];
    const argument = children(place.node, 'arguments')[index];
    return argument === undefined ? [] : [{ ...place, node: argument }];
  });
}

/** Returns the literals of every type of this name. */
function typeNamed({ sources, values }: Reader, name: string): readonly string[] {
  const types = sources.nodes(new RegExp(`\\btype ${name}\\b`), 'TSTypeAliasDeclaration');
  return types.filter(({ node }) => nameOf(child(node, 'id')) === name).flatMap((type) => values.ofType(type));
}

/**
 * Returns the texts of the source that the pattern matches: literals, and templates with `{}` for what is not constant.
 */
function textsLike({ sources, values }: Reader, pattern: RegExp, inSource: RegExp): readonly string[] {
  const literals = sources.nodes(inSource, 'Literal').flatMap(({ node }) => nameOf(node) ?? []);
  const templates = sources.nodes(inSource, 'TemplateLiteral').filter((place) => {
    const { start, end } = place.node;
    return inSource.test(place.module.text.slice(Number(start), Number(end)));
  });
  const texts = [...literals, ...templates.flatMap((place) => values.of(place))];
  return texts.flatMap((text) => [...text.matchAll(pattern)].map(([whole, part]) => part ?? whole));
}

/** Returns the literals and the templates that the pattern matches, in modules that hold `beside`. */
function shapesLike({ sources, values }: Reader, pattern: RegExp, beside: string): readonly string[] {
  const places = sources
    .holding(/./, beside)
    .flatMap((module) =>
      [...module.nodes('Literal'), ...module.nodes('TemplateLiteral')].map((node) => ({ module, node })),
    );
  return places.flatMap((place) => values.shapeOf(place)).filter((text) => pattern.test(text));
}

function eventLog(reader: Reader): string[] {
  const types = Object.entries(EVENT_CATALOGUE).flatMap(([category, kinds]) =>
    Object.entries(kinds).map(
      ([type, { version, record }]) => `${category} ${type} ${version} ${record ? 'record' : 'operational'}`,
    ),
  );
  const actors = (kind: string) =>
    objects(reader, new RegExp(`kind: '${kind}'`), 'kind', 'id')
      .filter((place) => nameOf(member(place, 'kind').node) === kind)
      .flatMap((place) => constant(reader, member(place, 'id')));
  return [
    ...grouped('stream', Object.keys(EVENT_CATALOGUE)),
    ...grouped('event', types),
    ...grouped('actor', typeNamed(reader, 'ActorKind')),
    ...grouped('system-actor', actors('system')),
    ...grouped('admin-actor', actors('admin')),
    ...grouped('data', eventData(reader)),
  ];
}

/** Returns the members of the data of each event, and the texts that they may be. */
function eventData({ sources, values }: Reader): string[] {
  const types = new Set(Object.values(EVENT_CATALOGUE).flatMap((kinds) => Object.keys(kinds)));
  const lines: string[] = [];
  const read = (place: Place, path: string, depth: number): void => {
    const { node } = place;
    const inner = (each: unknown, at = path) => (isSyntax(each) ? read({ ...place, node: each }, at, depth + 1) : null);
    if (depth > 20) throw new Error(`${whereOf(place)}: the data of an event are nested too deep`);
    for (const item of [...children(node, 'members'), ...children(node, 'body')]) {
      const name = `${path}.${nameOf(child(item, 'key')) ?? OPEN}`;
      lines.push(name);
      inner(child(item, 'typeAnnotation'), name);
    }
    for (const type of children(node, 'types')) inner(type);
    inner(child(node, 'typeAnnotation'));
    inner(child(node, 'elementType'), `${path}[]`);
    if (node.type === 'TSLiteralType' || node.type === 'TSIndexedAccessType') {
      for (const text of values.ofType(place)) lines.push(`${path} = ${text}`);
    }
    if (node.type !== 'TSTypeReference') return;
    const target = values.declared(place, nameOf(child(node, 'typeName')) ?? '');
    for (const argument of children(child(node, 'typeArguments'), 'params')) inner(argument);
    if (target !== null) read({ ...target, node: child(target.node, 'body') ?? target.node }, path, depth + 1);
  };
  const named = new RegExp(`<\\s*'(${[...types].join('|')})'`);
  for (const place of sources.nodes(named, 'TSTypeReference')) {
    const [type, data] = children(child(place.node, 'typeArguments'), 'params');
    const name = nameOf(child(type ?? null, 'literal'));
    if (name !== null && types.has(name) && data !== undefined) read({ ...place, node: data }, name, 0);
  }
  return lines;
}

async function database(reader: Reader): Promise<string[]> {
  const { values } = reader;
  const statements = [...(await migrationStatements()), ...(await readModelStatements())];
  const sql = statements.join(';\n');
  const text = (pattern: RegExp, inSource: RegExp) => textsLike(reader, pattern, inSource);
  const limits = objects(reader, /timesMax/, 'name', 'timesMax', 'spanMs');
  const marks = [...argumentsOf(reader, 'read', 0, 'marks'), ...argumentsOf(reader, 'save', 0, 'marks')].filter(
    ({ module, node }) => {
      const object = child(child(module.parentOf(node), 'callee'), 'object');
      return nameOf(object?.type === 'MemberExpression' ? child(object, 'property') : object) === 'marks';
    },
  );
  const models = Object.values(createModels(MODELS_OPTIONS));
  const snapshots = objects(reader, /\bsnapshots: \w/, 'category', 'snapshots').flatMap((place) =>
    values
      .ofMember(member(place, 'snapshots'), 'version')
      .flatMap((version) => constant(reader, member(place, 'category')).map((category) => `${category} ${version}`)),
  );
  return [
    ...grouped('migration', Object.keys(logMigrations.migrations)),
    ...grouped('table', tablesIn(sql)),
    ...grouped(
      'function',
      [...sql.matchAll(/CREATE OR REPLACE FUNCTION (\w+)|CREATE FUNCTION (\w+)/gi)].map(([, a, b]) => a ?? b ?? OPEN),
    ),
    ...grouped(
      'read-model',
      models.map(({ name, version }) => `${name} ${version}`),
    ),
    ...grouped('snapshot', [...snapshots, `account-fold ${ACCOUNT_FOLD_SNAPSHOT_VERSION}`]),
    ...grouped('channel', text(/(?:pg_notify\('|LISTEN )([a-z_{}]+)/g, /pg_notify\(|LISTEN \$/)),
    ...grouped('lock', text(/advisory_\w+\((\d+)/g, /advisory_/)),
    ...grouped('lock', text(/hashtextextended\('([^']+)/g, /advisory_/)),
    ...grouped('lock', text(/^strata\.(?!cjs).*$/g, /['`]strata\./)),
    ...grouped(
      'policy',
      marks.flatMap((place) => values.of(place)).filter((name) => name !== OPEN),
    ),
    ...grouped(
      'rate-limit',
      limits.flatMap((place) => constant(reader, member(place, 'name'))),
    ),
    ...grouped('vault-field', typeNamed(reader, 'VaultField')),
    ...grouped('cipher-context', shapesLike(reader, /^strata [a-z]+ [a-z]+ \d/, 'createCipheriv')),
    ...grouped(
      'derived-key',
      argumentsOf(reader, 'hkdfSync', 3).flatMap((place) => constant(reader, place)),
    ),
    ...grouped(
      'fingerprint',
      argumentsOf(reader, 'fingerprint', 0).flatMap((place) => constant(reader, place)),
    ),
    ...grouped('derived-id', shapesLike(reader, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '.derive<')),
  ];
}

/** What the models take of the world, and no list of their names and tables does. */
const MODELS_OPTIONS = { workflows: WORKFLOWS } as unknown as ModelsOptions;

async function migrationStatements(): Promise<readonly string[]> {
  const statements: string[] = [];
  const db = new Kysely<unknown>({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => new DummyDriver(),
      createIntrospector: (kysely) => new PostgresIntrospector(kysely),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
    log: ({ query }) => void statements.push(query.sql),
  });
  for (const migration of Object.values(logMigrations.migrations)) await migration.up(db);
  await db.destroy();
  return statements;
}

async function readModelStatements(): Promise<readonly string[]> {
  const statements: string[] = [];
  await createRunnerTables({
    query: async ({ text }) => {
      statements.push(text);
      return { rows: [], rowCount: 0 };
    },
  });
  const tables = Object.values(createModels(MODELS_OPTIONS)).flatMap((model) => model.tables);
  return [...statements, ...tables.flatMap(({ name, create }) => create(`read_models.${name}`))];
}

/** Returns the tables that statements create and their columns. */
function tablesIn(sql: string): string[] {
  const clean = sql.replaceAll(/--[^\n]*|"/g, '');
  const lines: string[] = [];
  for (const { 1: table = '', index, 0: start } of clean.matchAll(
    /CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([\w."]+)\s*\(/gi,
  )) {
    lines.push(table);
    for (const column of partsIn(clean, index + start.length)) {
      const [name = ''] = column.split(/\s/);
      if (!/^(PRIMARY|UNIQUE|CHECK|CONSTRAINT|FOREIGN|EXCLUDE|LIKE)$/i.test(name)) lines.push(`${table} ${name}`);
    }
  }
  for (const [, table, changes = ''] of clean.matchAll(/ALTER TABLE (?:IF EXISTS )?([\w."]+)([^;]*)/gi)) {
    for (const [, name] of changes.matchAll(/ADD COLUMN (?:IF NOT EXISTS )?([\w"]+)/gi)) lines.push(`${table} ${name}`);
  }
  return lines;
}

/** Returns what stands between commas from an open bracket to the one that closes it. */
function partsIn(text: string, from: number): string[] {
  const parts = [''];
  for (let [at, depth] = [from, 1]; at < text.length && depth > 0; at += 1) {
    const sign = text.charAt(at);
    if (sign === '(') depth += 1;
    if (sign === ')') depth -= 1;
    if (sign === ',' && depth === 1) parts.push('');
    else parts.push(`${parts.pop() ?? ''}${sign}`);
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

function temporal(reader: Reader): string[] {
  const { sources, values } = reader;
  const versioned = objects(reader, /\bversion: \d|\bversion,/, 'name', 'version');
  const workflows = versioned.filter(({ node }) => propertyNamed(node, 'rows') ?? propertyNamed(node, 'next'));
  const lines = workflows.flatMap((place) => {
    const [name = OPEN] = constant(reader, member(place, 'name'));
    const [version = OPEN] = constant(reader, member(place, 'version'));
    return [`${name} ${version}`, ...stepsOf(reader, place).map((step) => `${name} step ${step}`)];
  });
  const activities = argumentsOfType(sources, 'proxyActivities').flatMap((type) => {
    const declared = values.declared(type, nameOf(child(type.node, 'typeName')) ?? '');
    return children(child(declared?.node ?? null, 'body'), 'body').map((item) => nameOf(child(item, 'key')) ?? OPEN);
  });
  const first = (callee: string) => argumentsOf(reader, callee, 0).flatMap((place) => values.of(place));
  const failures = argumentsOf(reader, 'create', 0, 'ApplicationFailure').filter(({ node }) =>
    propertyNamed(node, 'type'),
  );
  const properties = (key: string) =>
    objects(reader, /@temporalio/, key).flatMap((place) => values.of(member(place, key)));
  return [
    ...grouped('workflow', lines),
    ...grouped('activity', activities),
    ...grouped('signal', first('defineSignal')),
    ...grouped('query', first('defineQuery')),
    ...grouped(
      'workflow-type',
      first('signalWithStart').filter((name) => name !== OPEN),
    ),
    ...grouped('workflow-id', properties('workflowId')),
    ...grouped(
      'task-queue',
      properties('taskQueue').filter((name) => name !== OPEN),
    ),
    ...grouped(
      'failure',
      failures.flatMap((place) => constant(reader, member(place, 'type'))),
    ),
  ];
}

/** Returns the steps of a workflow: the literals of the first type argument of the type that it is declared as. */
function stepsOf({ values }: Reader, { module, node }: Place): readonly string[] {
  for (let around = module.parentOf(node); around !== null; around = module.parentOf(around)) {
    const annotation = child(around, 'returnType') ?? child(child(around, 'id'), 'typeAnnotation');
    const [step] = children(child(child(annotation, 'typeAnnotation'), 'typeArguments'), 'params');
    if (step !== undefined) return values.ofType({ module, node: step });
  }
  throw new Error(`${whereOf({ module, node })}: no type says which steps this workflow has`);
}

function argumentsOfType(sources: Sources, callee: string): readonly Place[] {
  return sources.nodes(new RegExp(`\\b${callee}\\b`), 'CallExpression').flatMap(({ module, node }) => {
    const [type] = nameOf(child(node, 'callee')) === callee ? children(child(node, 'typeArguments'), 'params') : [];
    return type === undefined ? [] : [{ module, node: type }];
  });
}

function metrics(reader: Reader): string[] {
  const { values } = reader;
  const lines = metricsOf(reader.sources).map(({ name, labels }) => [name, ...labels].join(' '));
  const counted = ['inc', 'observe', 'set'].flatMap((method) => argumentsOf(reader, method, 0, 'prom-client'));
  const labels = counted.filter(({ node }) => node.type === 'ObjectExpression');
  const labelled = labels.flatMap((place) =>
    children(place.node, 'properties').flatMap((property) => {
      const [key, value] = [nameOf(child(property, 'key')), child(property, 'value')];
      if (key === null || value === null || property['computed'] === true) return [];
      return values.of({ ...place, node: value }).map((text) => `${key} = ${text}`);
    }),
  );
  const faults = argumentsOf(reader, 'onFault', 0).flatMap((place) => values.shapeOf(place));
  return [
    ...grouped('span', typeNamed(reader, 'TracedPart')),
    ...grouped('span-attribute', typeNamed(reader, 'SpanAttribute')),
    ...grouped('metric', lines),
    ...grouped('cache', cachesOf(reader.sources).names),
    ...grouped(
      'label',
      labelled.filter((line) => / = [a-z-]+$/.test(line)),
    ),
    ...grouped(
      'fault',
      faults.filter((fault) => fault !== OPEN),
    ),
    ...grouped('fault', Object.keys(PERIODIC)),
  ];
}

function api(reader: Reader): string[] {
  const { sources, values } = reader;
  const inTypes = [
    ...sources.nodes(/\bcode\??: /, 'TSPropertySignature'),
    ...sources.nodes(/\bcode( =|: )/, 'PropertyDefinition'),
  ];
  const codes = inTypes
    .filter(({ node }) => nameOf(child(node, 'key')) === 'code')
    .flatMap((place) => {
      const [type, value] = [child(place.node, 'typeAnnotation'), child(place.node, 'value')];
      return [
        ...(type === null ? [] : values.ofType({ ...place, node: type })),
        ...(value === null ? [] : constant(reader, { ...place, node: value })),
      ];
    });
  const thrown = sources
    .nodes(/extends CodedError</, 'ClassDeclaration')
    .filter(({ node }) => nameOf(child(node, 'superClass')) === 'CodedError')
    .flatMap((place) =>
      children(child(place.node, 'superTypeArguments'), 'params').flatMap((type) =>
        values.ofType({ ...place, node: type }),
      ),
    );
  const given = objects(reader, /\bcode: '/, 'code').flatMap((place) => values.of(member(place, 'code')));
  const headers = textsLike(reader, /^x-[a-z-]+$/gi, /['"]x-/i).map((name) => name.toLowerCase());
  const gitRoutes = [...GIT_ROUTES, ...PAST_GIT_ROUTES, ...LFS_ROUTES];
  return [
    ...grouped('refusal', Object.keys(REFUSALS)),
    ...grouped('outage', Object.keys(OUTAGES)),
    ...grouped('code', [...codes, ...thrown, ...given.filter((code) => /^[a-z][a-z-]*$/.test(code))]),
    ...grouped(
      'route',
      ROUTES.map(({ method, path, operationId }) => `${method} ${path} ${operationId}`),
    ),
    ...grouped(
      'git-route',
      gitRoutes.map(({ method, path, service }) => `${method} ${path} ${service}`),
    ),
    ...grouped('probe', textsLike(reader, /^\/(?:[a-z]+z|metrics)$/g, /'\/metrics'/)),
    ...grouped('grant', typeNamed(reader, 'Grant')),
    ...grouped('scope', typeNamed(reader, 'Scope')),
    ...grouped('plan', typeNamed(reader, 'Plan')),
    ...grouped('webhook-event', typeNamed(reader, 'WebhookEventKind')),
    ...grouped('header', headers),
  ];
}

function settings(reader: Reader): string[] {
  const commands = (command: Command, path: string): string[] => [
    ...command.registeredArguments.map((argument) => `${path} <${argument.name()}>`),
    ...command.options.map(({ flags }) => `${path} ${flags}`),
    ...command.commands.flatMap((inner) => [`${path} ${inner.name()}`, ...commands(inner, `${path} ${inner.name()}`)]),
  ];
  const variables = textsLike(reader, /^(?:STRATA|SERVICE|OTEL)_[A-Z0-9_]+$/g, /(?:STRATA|SERVICE|OTEL)_/);
  return [...grouped('variable', variables), ...grouped('command', commands(createProgram(), 'strata-admin'))];
}

function objectStore(reader: Reader): string[] {
  const keys = argumentsOf(reader, 'layerKey', 0).flatMap((place) => reader.values.shapeOf(place));
  return [
    ...grouped(
      'key',
      keys.filter((key) => key !== OPEN),
    ),
  ];
}

function browser(reader: Reader): string[] {
  const pages: string[] = [];
  const at = (method: string) => (path: string) => void pages.push(`${method} ${path}`);
  const [get, post] = [at('GET'), at('POST')];
  const context = {} as unknown as Site['context'];
  const site: Site = { context, page: get, publicPage: get, form: post, formBeyondQuota: post, publicForm: post };
  for (const room of ROOMS) room.routes(site);
  const cookies = ['https://strata.example', 'http://localhost'].flatMap((url) => Object.values(cookiesFor(url).names));
  return [
    ...grouped('page', pages),
    ...grouped('cookie', cookies),
    ...grouped(
      'proof',
      argumentsOf(reader, 'update', 0, 'createHmac')
        .flatMap((place) => reader.values.shapeOf(place))
        .filter((text) => /[a-z]/.test(text)),
    ),
  ];
}
