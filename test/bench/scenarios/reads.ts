/**
 * Polling and cloning: what a real git sends, recorded once for each side and repeated.
 *
 * Invariants: every repetition is the same request, as repeated polls and clones are; only the scenario that
 * measures an answer not computed before changes the repository each time.
 */
import { mkdtemp } from 'node:fs/promises';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { createConnection } from '../connection.ts';
import { git } from '../git.ts';
import { perform } from '../load.ts';
import type { Operation } from '../operation.ts';
import { type RecordedExchange, replayOperation } from '../recorder.ts';
import type { HttpBackendVariant } from '../sides/http-backend.ts';
import type { Repository, Side } from '../sides/side.ts';
import { startChainPusher } from './chain-pusher.ts';
import { record } from './recording.ts';
import type { BenchContext, PreparedWorkload, Scenario } from './scenario.ts';

const MAINTAINED: HttpBackendVariant = {
  label: 'http-backend, bitmap',
  durability: 'git defaults',
  config: {},
  maintained: true,
};

const GZIP_MAGIC = 0x1f8b;

type Command = (url: string) => readonly string[];

const CLONE: Command = (url) => ['clone', '--quiet', '--bare', url, 'copy'];
const IMPORT: Command = (url) => ['push', '--quiet', url, 'refs/heads/*:refs/heads/*', 'refs/tags/*:refs/tags/*'];

export const READ_SCENARIOS: readonly Scenario[] = [
  {
    name: 'ls-remote',
    title: 'ls-remote',
    clients: 8,
    kind: 'read',
    target: { ratios: { 'http-backend': 40 } },
    prepare: (context, side) => prepareRepeated(context, side, 'ls-remote', (url) => ['ls-remote', url]),
  },
  {
    name: 'fetch-nothing',
    title: 'fetch with nothing new',
    clients: 8,
    kind: 'read',
    target: { ratios: { 'http-backend': 40 } },
    async prepare(context, side) {
      const folder = await clientFolder(context);
      await git(['clone', '--quiet', '--no-checkout', context.project.folder, 'copy'], { cwd: folder });
      const fetch: Command = (url) => [
        '-C',
        'copy',
        '-c',
        `remote.origin.url=${url}`,
        'fetch',
        '--quiet',
        url,
        '+refs/heads/*:refs/remotes/origin/*',
      ];
      return prepareRepeated(context, side, 'fetch', fetch, folder);
    },
  },
  {
    name: 'shallow-clone',
    title: 'shallow clone, repeated',
    clients: 4,
    kind: 'read',
    target: { ratios: { 'http-backend': 100 } },
    variants: [MAINTAINED],
    prepare: (context, side) =>
      prepareRepeated(context, side, 'shallow', (url) => ['clone', '--quiet', '--bare', '--depth=1', url, 'copy']),
  },
  {
    name: 'full-clone',
    title: 'full clone, repeated',
    clients: 4,
    kind: 'read',
    target: { ratios: { 'http-backend': 8, [MAINTAINED.label]: 5 } },
    variants: [MAINTAINED],
    prepare: (context, side) => prepareRepeated(context, side, 'clone', CLONE),
  },
  {
    name: 'full-clone-after-push',
    title: 'first full clone after a push',
    clients: 1,
    kind: 'read',
    target: { ratios: { 'http-backend': 3 } },
    roundFactor: 4,
    prepare: prepareCloneAfterPush,
  },
  {
    name: 'full-clone-after-import',
    title: 'full clone right after an import',
    clients: 1,
    kind: 'read',
    target: {},
    roundFactor: 4,
    atOnce: true,
    prepare: prepareCloneAfterImport,
  },
];

/** Makes a new folder for a recording, since recording leaves clones behind. */
async function clientFolder(context: BenchContext): Promise<string> {
  return mkdtemp(path.join(context.workFolder, 'client-'));
}

async function prepareRepeated(
  context: BenchContext,
  side: Side,
  name: string,
  command: Command,
  folder?: string,
): Promise<PreparedWorkload> {
  const repository = await side.createRepository(`read-${name}`, context.project);
  const exchanges = await record(side, repository, folder ?? (await clientFolder(context)), command);
  const operation = replayOperation(exchanges, { port: side.port, fromPath: repository.path, toPath: repository.path });
  return {
    next: () => operation,
    dispose: () => side.removeRepository(repository),
  };
}

/** One clone in each round, after a push that invalidates every earlier answer. */
async function prepareCloneAfterPush(context: BenchContext, side: Side): Promise<PreparedWorkload> {
  const repository = await side.createRepository('read-after-push', context.project);
  const pusher = await startChainPusher(context, side, [repository]);
  const recordedTip = pusher.tip(0);
  const exchanges = await record(side, repository, await clientFolder(context), CLONE);
  let prepared: Operation | null = null;
  return {
    async replenish() {
      const push = pusher.next(0);
      if (push === null) throw new Error('The commit chain is too short for this many rounds');
      const connection = createConnection(side.port);
      await perform(connection, push);
      connection.close();
      const moved = exchanges.map((exchange) => replaceInBody(exchange, recordedTip, pusher.tip(0)));
      const target = { port: side.port, fromPath: repository.path, toPath: repository.path };
      prepared = replayOperation(moved, target);
    },
    next() {
      const operation = prepared;
      prepared = null;
      return operation;
    },
    dispose: () => side.removeRepository(repository),
  };
}

/** One clone in each round, of a repository that was imported just before. */
async function prepareCloneAfterImport(context: BenchContext, side: Side): Promise<PreparedWorkload> {
  const { folder } = context.project;
  const recorded = await side.createRepository('read-after-import', null);
  const imported = await record(side, recorded, folder, IMPORT);
  const cloned = await record(side, recorded, await clientFolder(context), CLONE);
  await side.removeRepository(recorded);
  let generation = 0;
  let repository: Repository | null = null;
  const remove = async (): Promise<void> => {
    if (repository !== null) await side.removeRepository(repository);
    repository = null;
  };
  let prepared: Operation | null = null;
  return {
    async replenish() {
      await remove();
      generation += 1;
      repository = await side.createRepository(`read-after-import-${generation}`, null);
      await side.group.settle();
      const target = { port: side.port, fromPath: recorded.path, toPath: repository.path };
      const connection = createConnection(side.port);
      await perform(connection, replayOperation(imported, target));
      connection.close();
      prepared = replayOperation(cloned, target);
    },
    next() {
      const operation = prepared;
      prepared = null;
      return operation;
    },
    dispose: remove,
  };
}

/**
 * Replaces an id in the body. git compresses bodies above 1 KiB; all ids have one length, so the packets stay valid.
 */
function replaceInBody(exchange: RecordedExchange, from: string, to: string): RecordedExchange {
  const compressed = exchange.body.length > 2 && exchange.body.readUInt16BE(0) === GZIP_MAGIC;
  const body = compressed ? gunzipSync(exchange.body) : exchange.body;
  const replaced = Buffer.from(body.toString('latin1').replaceAll(from, to), 'latin1');
  return { ...exchange, body: compressed ? gzipSync(replaced) : replaced };
}
