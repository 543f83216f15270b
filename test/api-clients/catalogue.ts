/**
 * The generators of clients that `npm run api-clients` tries, and how each client is made, compiled and started.
 *
 * Invariants: versions of generators are pinned; they and what their clients need come through the language's own
 * package client. Generators are kept beside the tools of other tests; what they make is not kept.
 */
import { cp, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DriverCommand } from '../clients/client.ts';
import { installOnce, pythonEnvironment, requireProgram, run } from '../clients/installing.ts';

interface Place {
  /** An empty folder, but for the document. */
  readonly folder: string;
  /** The file that holds the document. */
  readonly document: string;
}

export interface Generator {
  /** A word of the command line, and a username. */
  readonly name: string;
  readonly maker: string;
  readonly document: 'openapi.json' | 'openapi-3.0.json';
  /** Generates and compiles; throws NotInstalled if this machine lacks the language. */
  readonly make: (place: Place) => Promise<DriverCommand>;
}

const OPENAPI_GENERATOR = '7.26.0';
const HEY_API = '0.99.0';
const OAPI_CODEGEN = 'v2.8.2';
const OGEN = 'v1.25.0';
const TYPESCRIPT = ['typescript@5.9.3', '@types/node@24.0.15'];

/** Generated code is small, and each start of Java is short. */
const SMALL_JAVA = '-XX:+UseSerialGC -XX:TieredStopAtLevel=1';
/** The generated project is one of Java 8, and the driver is newer. */
const JAVA_17 = ['-Dmaven.compiler.source=17', '-Dmaven.compiler.target=17'];
/** The installed Go is used: a newer one would have to be downloaded. */
const GO = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod -buildvcs=false -modcacherw', CGO_ENABLED: '0' };

export const GENERATORS: readonly Generator[] = [
  { name: 'python', maker: `openapi-generator ${OPENAPI_GENERATOR}`, document: 'openapi.json', make: python },
  {
    name: 'typescript-fetch',
    maker: `openapi-generator ${OPENAPI_GENERATOR}`,
    document: 'openapi.json',
    make: fetchApi,
  },
  { name: 'go', maker: `openapi-generator ${OPENAPI_GENERATOR}`, document: 'openapi.json', make: go },
  { name: 'java', maker: `openapi-generator ${OPENAPI_GENERATOR}`, document: 'openapi.json', make: java },
  { name: 'rust', maker: `openapi-generator ${OPENAPI_GENERATOR}`, document: 'openapi.json', make: rust },
  { name: 'hey-api', maker: `@hey-api/openapi-ts ${HEY_API}`, document: 'openapi.json', make: heyApi },
  { name: 'oapi-codegen', maker: `oapi-codegen ${OAPI_CODEGEN}`, document: 'openapi-3.0.json', make: oapiCodegen },
  { name: 'ogen', maker: `ogen ${OGEN}`, document: 'openapi-3.0.json', make: ogen },
];

function sourceOf(name: string, file: string): string {
  return path.join(import.meta.dirname, name, file);
}

/** Makes a client in `folder/client`; of Python's packages one has a Java of its own. */
async function openapiGenerator({ folder, document }: Place, language: string, properties = ''): Promise<string> {
  const environment = await pythonEnvironment('openapi-generator', sourceOf('.', 'requirements.txt'));
  const client = path.join(folder, 'client');
  const args = ['generate', '--input-spec', document, '--generator-name', language, '--output', client];
  const without = 'apiTests=false,modelTests=false,apiDocs=false,modelDocs=false';
  await run(
    path.join(environment, 'bin/openapi-generator-cli'),
    [...args, '--global-property', without, ...(properties === '' ? [] : ['--additional-properties', properties])],
    { cwd: folder, env: { JAVA_TOOL_OPTIONS: SMALL_JAVA } },
  );
  return environment;
}

async function python(place: Place): Promise<DriverCommand> {
  const program = path.join(await openapiGenerator(place, 'python'), 'bin/python');
  await run(program, ['-m', 'compileall', '-q', path.join(place.folder, 'client/openapi_client')]);
  const driver = path.join(place.folder, 'client/driver.py');
  await cp(sourceOf('python', 'driver.py'), driver);
  return { command: program, args: [driver] };
}

async function fetchApi(place: Place): Promise<DriverCommand> {
  await openapiGenerator(place, 'typescript-fetch');
  return typescript(place, 'typescript-fetch', await nodeTools());
}

async function heyApi(place: Place): Promise<DriverCommand> {
  const tools = await nodeTools();
  const { folder, document } = place;
  await run(path.join(tools, 'node_modules/.bin/openapi-ts'), ['-i', document, '-o', path.join(folder, 'client')], {
    cwd: folder,
  });
  return typescript(place, 'hey-api', tools);
}

function nodeTools(): Promise<string> {
  return installOnce('api-clients-node', [import.meta.filename], async (made) => {
    const quietly = ['--loglevel=error', '--no-save', '--no-audit', '--no-fund'];
    await run('npm', ['install', ...quietly, '--prefix', made, `@hey-api/openapi-ts@${HEY_API}`, ...TYPESCRIPT]);
  });
}

/** The generated modules import each other without an ending, which Node takes in CommonJS only. */
async function typescript({ folder }: Place, name: string, tools: string): Promise<DriverCommand> {
  await cp(sourceOf(name, 'driver.ts.txt'), path.join(folder, 'driver.ts'));
  const types = ['--typeRoots', path.join(tools, 'node_modules/@types'), '--types', 'node'];
  const modules = ['--module', 'commonjs', '--moduleResolution', 'node10', '--target', 'es2022'];
  const out = ['--outDir', path.join(folder, 'out'), '--strict', '--skipLibCheck', '--lib', 'es2022,dom,dom.iterable'];
  await run(path.join(tools, 'node_modules/.bin/tsc'), [...modules, ...types, ...out, path.join(folder, 'driver.ts')]);
  return { command: process.execPath, args: [path.join(folder, 'out/driver.js')] };
}

async function go(place: Place): Promise<DriverCommand> {
  await requireProgram('Go', 'go', ['version']);
  await openapiGenerator(place, 'go', 'packageName=api,withGoMod=false');
  return goDriver(place, 'go', []);
}

async function oapiCodegen(place: Place): Promise<DriverCommand> {
  const program = await goTool(
    'oapi-codegen',
    `github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@${OAPI_CODEGEN}`,
  );
  await mkdir(path.join(place.folder, 'client'));
  const output = ['-generate', 'types,client', '-package', 'api', '-o', path.join(place.folder, 'client/client.go')];
  await run(program, [...output, place.document]);
  return goDriver(place, 'oapi-codegen', []);
}

async function ogen(place: Place): Promise<DriverCommand> {
  const program = await goTool('ogen', `github.com/ogen-go/ogen/cmd/ogen@${OGEN}`);
  const { folder, document } = place;
  // It cannot tell the two ways into a bucket of Amazon S3 apart, and leaves `createStorageBucket` out.
  const settings = path.join(folder, 'ogen.yml');
  await writeFile(settings, 'generator:\n  ignore_not_implemented: ["type-based discrimination with same jxType"]\n');
  const output = ['--target', path.join(folder, 'client'), '--package', 'api'];
  await run(program, ['--config', settings, ...output, document]);
  return goDriver(place, 'ogen', [`github.com/ogen-go/ogen@${OGEN}`]);
}

async function goTool(name: string, module: string): Promise<string> {
  await requireProgram('Go', 'go', ['version']);
  const installed = await installOnce(`api-clients-${name}`, [import.meta.filename], (made) =>
    run('go', ['install', module], { env: { ...GO, GOBIN: made } }),
  );
  return path.join(installed, name);
}

async function goDriver({ folder }: Place, name: string, modules: readonly string[]): Promise<DriverCommand> {
  await cp(sourceOf(name, 'main.go'), path.join(folder, 'main.go'));
  const options = { cwd: folder, env: GO };
  await run('go', ['mod', 'init', 'strata'], options);
  if (modules.length > 0) await run('go', ['get', ...modules], options);
  await run('go', ['mod', 'tidy'], options);
  await run('go', ['build', '-o', 'driver', '.'], options);
  return { command: path.join(folder, 'driver'), args: [] };
}

async function java(place: Place): Promise<DriverCommand> {
  await requireProgram('a JDK', 'javac', ['-version']);
  await requireProgram('Maven', 'mvn', ['--version']);
  await openapiGenerator(place, 'java');
  const client = path.join(place.folder, 'client');
  await cp(sourceOf('java', 'Driver.java'), path.join(client, 'src/main/java/Driver.java'));
  const quietly = ['--batch-mode', '--quiet', '-Dmaven.test.skip=true', '-DincludeScope=runtime', ...JAVA_17];
  await run('mvn', [...quietly, 'compile', 'dependency:copy-dependencies', '-DoutputDirectory=lib'], { cwd: client });
  const classes = `${path.join(client, 'target/classes')}:${path.join(client, 'lib')}/*`;
  return { command: 'java', args: [...SMALL_JAVA.split(' '), '-cp', classes, 'Driver'] };
}

async function rust(place: Place): Promise<DriverCommand> {
  await requireProgram('Cargo', 'cargo', ['--version']);
  await openapiGenerator(place, 'rust', 'packageName=openapi');
  const { folder } = place;
  await mkdir(path.join(folder, 'src'));
  await cp(sourceOf('rust', 'main.rs'), path.join(folder, 'src/main.rs'));
  await cp(sourceOf('rust', 'Cargo.toml'), path.join(folder, 'Cargo.toml'));
  await run('cargo', ['build', '--quiet'], { cwd: folder });
  return { command: path.join(folder, 'target/debug/strata-driver'), args: [] };
}
