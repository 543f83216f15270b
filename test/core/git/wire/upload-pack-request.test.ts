/** Bodies of POST git-upload-pack: those of real clients, and hostile ones compared with git itself. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import {
  FETCH_DEEPEN_NOT_MAX,
  FETCH_HAVES_MAX,
  FETCH_WANTS_MAX,
  type FetchRequest,
} from '../../../../core/git/wire/fetch-request.ts';
import { SHALLOW_LINES_MAX } from '../../../../core/git/wire/limits.ts';
import { LS_REFS_PREFIX_LINES_MAX } from '../../../../core/git/wire/ls-refs.ts';
import {
  concatBytes,
  DELIMITER_PACKET,
  dataPacket,
  FLUSH_PACKET,
  RESPONSE_END_PACKET,
} from '../../../../core/git/wire/pkt-line.ts';
import { parseGitProtocolHeader } from '../../../../core/git/wire/protocol-version.ts';
import {
  parseUploadPackRequest,
  REQUEST_CAPABILITIES_MAX,
  SERVER_OPTION_BYTES_MAX,
  SERVER_OPTIONS_MAX,
} from '../../../../core/git/wire/upload-pack-request.ts';
import { objectId } from '../../../../core/kernel/ids.ts';
import { FETCH_REQUEST_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import { type GitHttpBackend, startGitHttpBackend } from '../../../support/git-http-backend.ts';
import { git, temporaryFolder } from '../../../support/git-process.ts';
import { createSampleRepository } from '../../../support/sample-repository.ts';

const FLUSH = Symbol('flush');
const DELIMITER = Symbol('delimiter');
const RESPONSE_END = Symbol('response-end');
type Part = string | symbol;

function body(parts: readonly Part[]): Uint8Array {
  return concatBytes(
    parts.map((part) => {
      if (typeof part === 'string') return dataPacket(part);
      return part === FLUSH ? FLUSH_PACKET : part === DELIMITER ? DELIMITER_PACKET : RESPONSE_END_PACKET;
    }),
  );
}

function printed(parts: readonly Part[]): string {
  return parts.map((part) => (typeof part === 'string' ? JSON.stringify(part) : part.description)).join(' ');
}

const NO_TURNS = async (): Promise<void> => undefined;

async function verdict(parts: readonly Part[], version: 0 | 1 | 2): Promise<string> {
  const found = await parseUploadPackRequest(body(parts), version, NO_TURNS);
  return 'refused' in found ? found.refused : found.kind;
}

async function fetched(bytes: Uint8Array, version: 0 | 1 | 2): Promise<FetchRequest> {
  const found = await parseUploadPackRequest(bytes, version, NO_TURNS);
  assert.ok('kind' in found && found.kind === 'fetch', JSON.stringify(found));
  return found.request;
}

const ID = 'a'.repeat(40);
const v2 = (...args: readonly Part[]): Part[] => ['command=fetch', 'object-format=sha1', DELIMITER, ...args, FLUSH];

describe('The requests of a real client', () => {
  const folder = temporaryFolder('fetch-requests');
  let backend: GitHttpBackend;
  let path: string;
  const commit = (revision: string) => objectId(git(['rev-parse', revision], { cwd: path }).toString().trim());

  beforeAll(async () => {
    path = createSampleRepository(folder.path);
    backend = await startGitHttpBackend(folder.path);
  });
  afterAll(async () => {
    await backend.close();
    folder.remove();
  });

  /** Runs a client's commands and returns its fetch requests, parsed. */
  async function fetches(version: number, ...commands: readonly (readonly string[])[]): Promise<FetchRequest[]> {
    backend.requests.length = 0;
    const env = { PATH: process.env['PATH'], HOME: folder.path, GIT_CONFIG_NOSYSTEM: '1', GIT_TERMINAL_PROMPT: '0' };
    for (const command of commands) {
      await promisify(execFile)('git', ['-c', `protocol.version=${version}`, ...command], { cwd: folder.path, env });
    }
    const requests: FetchRequest[] = [];
    for (const { method, body: bytes, protocol } of backend.requests) {
      if (method !== 'POST') continue;
      const found = await parseUploadPackRequest(bytes, parseGitProtocolHeader(protocol), NO_TURNS);
      assert.ok('kind' in found, JSON.stringify(found));
      if (found.kind === 'fetch') requests.push(found.request);
    }
    return requests;
  }

  let clones = 0;
  const clone = (...options: readonly string[]) => {
    clones++;
    return ['clone', '--quiet', ...options, `${backend.url}/sample.git`, join(folder.path, `clone-${clones}`)];
  };
  const fetch = (...options: readonly string[]) => [
    '-C',
    join(folder.path, `clone-${clones}`),
    'fetch',
    '--quiet',
    ...options,
  ];

  for (const version of [0, 1, 2]) {
    test(`are understood in v${version}: clone`, async () => {
      const [request, ...others] = await fetches(version, clone());
      assert.ok(request !== undefined && others.length === 0);
      assert.equal(request.version, version);
      assert.ok(request.wants.includes(commit('refs/tags/v1-signed')));
      assert.ok(request.wants.includes(commit('main')));
      assert.equal(request.haveCount, 0);
      assert.deepEqual(
        [
          request.done,
          request.thinPack,
          request.ofsDelta,
          request.noProgress,
          request.sideBand,
          request.deepen,
          request.filter,
        ],
        [true, true, true, true, 'side-band-64k', null, null],
      );
      assert.equal(request.multiAck, version === 2 ? 'none' : 'multi_ack_detailed');
    });

    test(`are understood in v${version}: a shallow clone, deepened, then unshallowed`, async () => {
      const [shallow] = await fetches(version, clone('--depth=2', '--branch=main'));
      assert.deepEqual(shallow?.deepen, { kind: 'depth', commits: 2, relative: false });
      assert.deepEqual(shallow.wants, [commit('main')]);
      const [deeper] = await fetches(version, fetch('--deepen=1'));
      assert.deepEqual(deeper?.deepen, { kind: 'depth', commits: 1, relative: true });
      assert.deepEqual(deeper.shallow, [commit('main~1')]);
      const [whole] = await fetches(version, fetch('--unshallow'));
      assert.deepEqual(whole?.deepen, { kind: 'depth', commits: 2_147_483_647, relative: false });
      assert.deepEqual(whole.shallow, [commit('main~2')]);
    });

    test(`are understood in v${version}: a clone since a date and without a branch's history`, async () => {
      const [request] = await fetches(
        version,
        clone('--shallow-since=1700000005', '--shallow-exclude=dev', '--no-tags'),
      );
      assert.deepEqual(request?.deepen, { kind: 'limits', sinceSeconds: 1_700_000_005, not: ['dev'] });
    });

    test(`are understood in v${version}: partial clones, and the objects they fetch later`, async () => {
      const requests = await fetches(version, clone('--filter=blob:none', '--no-tags', '--branch=main'));
      assert.deepEqual(requests[0]?.filter, { kind: 'blob:none' });
      const blobs = requests.slice(1).flatMap(({ wants }) => wants);
      assert.ok(blobs.includes(commit('main:file')), 'the checkout requests blobs by id');
      const [tree] = await fetches(version, clone('--filter=tree:0', '--no-checkout'));
      assert.deepEqual(tree?.filter, { kind: 'tree', depth: 0 });
      const [limit] = await fetches(version, clone('--filter=blob:limit=1k', '--no-checkout'));
      assert.deepEqual(limit?.filter, { kind: 'blob:limit', sizeBytes: 1_024 });
    });

    test(`are understood in v${version}: a fetch that negotiates`, async () => {
      await fetches(version, clone('--single-branch', '--branch=dev', '--no-tags'));
      const requests = await fetches(version, fetch('origin', 'main:main'));
      assert.ok(requests.some(({ haveCount }) => haveCount > 0));
      assert.ok(requests.every(({ wants }) => wants[0] === commit('main')));
    });
  }
});

describe('A body that', () => {
  const folder = temporaryFolder('fetch-bodies');
  let path: string;
  let main: string;
  beforeAll(() => {
    path = createSampleRepository(folder.path);
    main = git(['rev-parse', 'main'], { cwd: path }).toString().trim();
  });
  afterAll(() => folder.remove());

  /** Returns whether git itself serves the body: exit status 0. */
  function gitServes(parts: readonly Part[], version: 0 | 1 | 2): boolean {
    const own = parts.map((part) => (typeof part === 'string' ? part.replaceAll(ID, main) : part));
    try {
      git(['upload-pack', '--stateless-rpc', path], { input: body(own), env: { GIT_PROTOCOL: `version=${version}` } });
      return true;
    } catch {
      return false;
    }
  }

  const refusals: readonly (readonly [string, 0 | 2, readonly Part[]])[] = [
    ['command-missing', 2, ['agent=x', FLUSH]],
    ['command-repeated', 2, ['command=fetch', 'command=fetch', DELIMITER, FLUSH]],
    ['command-unknown', 2, ['command=push', FLUSH]],
    ['command-unknown', 2, ['command=agent', FLUSH]],
    ['capability-unknown', 2, ['command=fetch', 'session-id=1', DELIMITER, FLUSH]],
    ['capability-unknown', 2, ['command=fetch', 'fetch=shallow', DELIMITER, FLUSH]],
    ['object-format-unsupported', 2, ['command=fetch', 'object-format=sha256', DELIMITER, FLUSH]],
    ['packet-malformed', 2, ['command=fetch', RESPONSE_END]],
    ['packet-malformed', 2, ['command=fetch', DELIMITER, 'done', DELIMITER, FLUSH]],
    ['packet-truncated', 2, ['command=fetch']],
    ['packet-truncated', 2, ['command=fetch', DELIMITER, 'done']],
    ['argument-unknown', 2, v2('bogus')],
    ['argument-unknown', 2, v2('want-ref refs/heads/main')],
    ['argument-unknown', 2, v2('sideband-all')],
    ['argument-unknown', 2, v2('done ')],
    ['argument-unknown', 2, v2('')],
    ['want-malformed', 2, v2('want ')],
    ['want-malformed', 2, v2('want main')],
    ['want-malformed', 2, v2(`want ${ID.slice(1)}`)],
    ['have-malformed', 2, v2(`want ${ID}`, 'have x', 'done')],
    ['shallow-malformed', 2, v2(`want ${ID}`, 'shallow x', 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen 0', 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen -1', 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen x', 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen-since x', 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen-not ', 'done')],
    ['deepen-conflict', 2, v2(`want ${ID}`, 'deepen 1', 'deepen-since 5', 'done')],
    ['deepen-conflict', 2, v2(`want ${ID}`, 'deepen 1', 'deepen-not main', 'done')],
    ['filter-unsupported', 2, v2(`want ${ID}`, 'filter bogus', 'done')],
    ['filter-repeated', 2, v2(`want ${ID}`, 'filter blob:none', 'filter tree:1', 'done')],
    ['packet-truncated', 0, [`want ${ID}`]],
    ['argument-unknown', 0, ['command=fetch', DELIMITER, FLUSH]],
    ['argument-unknown', 0, [`wants ${ID}`, FLUSH]],
    ['want-malformed', 0, ['want x', FLUSH, 'done']],
    ['have-malformed', 0, [`want ${ID}`, FLUSH, `want ${ID}`, 'done']],
    ['filter-not-negotiated', 0, [`want ${ID} side-band`, 'filter blob:none', FLUSH, 'done']],
    ['filter-not-negotiated', 0, ['filter blob:none', `want ${ID} filter`, FLUSH, 'done']],
    ['packet-truncated', 0, [`want ${ID}`, FLUSH, `have ${ID}`]],
    ['packet-truncated', 0, [`want ${ID}`, 'deepen 1', FLUSH, `have ${ID}`]],
    ['deepen-conflict', 2, v2(`want ${ID}`, 'deepen 1', 'deepen-since 0', 'done')],
    ['deepen-conflict', 0, [`want ${ID}`, 'deepen 1', 'deepen-since 5', FLUSH, 'done']],
  ];
  for (const [code, version, parts] of refusals) {
    test(`holds ${printed(parts)} in v${version} is refused, as by git: ${code}`, async () => {
      assert.equal(await verdict(parts, version), code);
      // git treats a flush instead of a command as the end of the connection.
      if (code !== 'command-missing') assert.ok(!gitServes(parts, version));
    });
  }

  const strictly: readonly (readonly [string, 0 | 2, readonly Part[]])[] = [
    ['request-trailing-bytes', 2, [...v2(`want ${ID}`, 'done'), ...v2(`want ${ID}`, 'done')]],
    ['request-trailing-bytes', 0, [`want ${ID}`, FLUSH, 'done', `want ${ID}`]],
    ['request-trailing-bytes', 2, [FLUSH, 'command=fetch', FLUSH]],
    ['argument-unknown', 2, v2('packfile-uris https')],
    ['want-malformed', 2, v2(`want ${ID}0`, 'done')],
    ['want-malformed', 2, v2(`want ${ID.toUpperCase()}`, 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen 010', 'done')],
    ['deepen-malformed', 2, v2(`want ${ID}`, 'deepen 2147483648', 'done')],
    ['argument-unknown', 2, v2(`want ${ID}`, 'done\0x')],
    ['argument-unknown', 0, [`want ${ID}\0deepen-relative`, FLUSH, 'done']],
  ];
  for (const [code, version, parts] of strictly) {
    test(`attack: holds ${printed(parts)}, which git could read in another way, is refused: ${code}`, async () => {
      assert.equal(await verdict(parts, version), code);
    });
  }

  test('is only a flush is a probe, in every version', async () => {
    for (const version of [0, 1, 2] as const) assert.equal(await verdict([FLUSH], version), 'probe');
  });

  test('ends with a further flush is accepted, and one in v0 without haves', async () => {
    assert.equal(await verdict([`want ${ID}`, FLUSH, 'done', FLUSH], 0), 'fetch');
    assert.equal(await verdict([`want ${ID} ofs-delta`, 'deepen 1', FLUSH], 0), 'fetch');
    assert.equal(await verdict(['command=fetch', FLUSH], 2), 'fetch');
  });

  test('names wants twice, or capabilities on any want line in v0, counts them once, as for git', async () => {
    const parts = [
      `want ${ID}`,
      `want ${ID}\tmulti_ack filter=1 side-band side-band-64k unknown\n`,
      'filter blob:none',
    ];
    const request = await fetched(body([...parts, FLUSH, `have ${ID}`, `have ${ID}`, 'done\n']), 0);
    assert.ok(gitServes([...parts, FLUSH, `have ${ID}`, 'done'], 0));
    assert.deepEqual([request.wants, request.haveCount], [[ID], 2]);
    assert.deepEqual(
      [request.multiAck, request.sideBand, request.filter?.kind],
      ['multi_ack', 'side-band-64k', 'blob:none'],
    );
  });

  for (const [filter, taken] of [
    ['blob:none', true],
    ['blob:limit=0', true],
    ['blob:limit=10K', true],
    ['blob:limit=1g', true],
    ['tree:0', true],
    ['tree:16', true],
    ['tree:17', false],
    ['tree:016', false],
    ['tree:0x1', false],
    ['tree:', false],
    ['blob:limit=', false],
    ['blob:limit=-1', false],
    ['blob:limit=010', false],
    ['blob:limit=1t', false],
    ['blob:limit=99999999999999999999g', false],
    ['blob:NONE', false],
    ['object:type=blob', false],
    ['sparse:oid=main', false],
    ['combine:blob:none+tree:1', false],
  ] as const) {
    test(`filters by ${filter} is ${taken ? 'accepted' : 'refused'}`, async () => {
      assert.equal(await verdict(v2(`want ${ID}`, `filter ${filter}`), 2), taken ? 'fetch' : 'filter-unsupported');
      if (taken) assert.ok(gitServes(v2(`want ${ID}`, `filter ${filter}`, 'done'), 2));
    });
  }

  test('asks for all commits since the epoch is accepted, as by git', async () => {
    const since = v2(`want ${ID}`, 'deepen-since 0', 'done');
    assert.deepEqual((await fetched(body(since), 2)).deepen, { kind: 'limits', sinceSeconds: 0, not: [] });
    assert.ok(gitServes(since, 2));
  });

  test('reaches a limit is accepted, and one past it refused', async () => {
    const ids = (count: number) =>
      Array.from({ length: count }, (_, index) => `shallow ${index.toString().padStart(40, '0')}`);
    assert.equal(await verdict(v2(...ids(SHALLOW_LINES_MAX)), 2), 'fetch');
    assert.equal(await verdict(v2(...ids(SHALLOW_LINES_MAX + 1)), 2), 'too-many-shallow-lines');
    const nots = (count: number) => Array.from({ length: count }, () => 'deepen-not main');
    assert.equal(await verdict(v2(...nots(FETCH_DEEPEN_NOT_MAX)), 2), 'fetch');
    assert.equal(await verdict(v2(...nots(FETCH_DEEPEN_NOT_MAX + 1)), 2), 'too-many-deepen-not-lines');
    const options = (count: number, size: number) =>
      Array.from({ length: count }, () => `server-option=${'x'.repeat(size)}`);
    assert.equal(await verdict([...options(SERVER_OPTIONS_MAX, SERVER_OPTION_BYTES_MAX), ...v2()], 2), 'fetch');
    assert.equal(await verdict([...options(SERVER_OPTIONS_MAX + 1, 1), ...v2()], 2), 'too-many-server-options');
    assert.equal(await verdict([...options(1, SERVER_OPTION_BYTES_MAX + 1), ...v2()], 2), 'too-many-server-options');
    const large = new Uint8Array(FETCH_REQUEST_BYTES_MAX + 1).fill(0x30);
    const answers = await Promise.all(
      [large.subarray(1), large].map((bytes) => parseUploadPackRequest(bytes, 2, NO_TURNS)),
    );
    assert.deepEqual(
      answers.map((found) => ('refused' in found ? found.refused : found.kind)),
      ['probe', 'packets-too-large'],
    );
  });

  // The attack: 600,000 haves in one request took 1.6 s of the event loop, and 26 of them at the same time 31 s.
  test('holds more wants, haves, prefixes or capabilities than git sends is refused by name', async () => {
    const ids = (word: string, count: number) =>
      Array.from({ length: count }, (_, index) => `${word} ${index.toString().padStart(40, '0')}`);
    const fetching = (...lists: readonly Part[][]): Part[] => [['command=fetch', DELIMITER], ...lists, [FLUSH]].flat();
    const wide = await fetched(body(fetching(ids('want', FETCH_WANTS_MAX), ['done'])), 2);
    assert.equal(wide.wants.length, FETCH_WANTS_MAX);
    assert.equal(await verdict(fetching(ids('want', FETCH_WANTS_MAX + 1)), 2), 'too-many-wants');
    const deep = await fetched(body(fetching([`want ${ID}`], ids('have', FETCH_HAVES_MAX))), 2);
    assert.equal(deep.haveCount, FETCH_HAVES_MAX);
    assert.equal(await verdict(fetching([`want ${ID}`], ids('have', FETCH_HAVES_MAX + 1)), 2), 'too-many-haves');
    const v0 = (count: number) => [[`want ${ID}`, FLUSH], ids('have', count), ['done']].flat();
    assert.equal(await verdict(v0(FETCH_HAVES_MAX), 0), 'fetch');
    assert.equal(await verdict(v0(FETCH_HAVES_MAX + 1), 0), 'too-many-haves');
    const lsRefs = (count: number): Part[] =>
      [['command=ls-refs', DELIMITER], ids('ref-prefix', count), [FLUSH]].flat();
    assert.equal(await verdict(lsRefs(LS_REFS_PREFIX_LINES_MAX), 2), 'ls-refs');
    assert.equal(await verdict(lsRefs(LS_REFS_PREFIX_LINES_MAX + 1), 2), 'too-many-ref-prefixes');
    const agents = (count: number) => Array.from({ length: count }, () => 'agent=a');
    assert.equal(await verdict([...agents(REQUEST_CAPABILITIES_MAX - 2), ...v2()], 2), 'fetch');
    assert.equal(await verdict([...agents(REQUEST_CAPABILITIES_MAX - 1), ...v2()], 2), 'too-many-capabilities');
  });

  test('is long gives others the event loop between its parts', async () => {
    const turnsOf = async (parts: readonly Part[], version: 0 | 2): Promise<number> => {
      let turns = 0;
      const found = await parseUploadPackRequest(body(parts), version, async () => void (turns += 1));
      assert.ok('kind' in found);
      return turns;
    };
    const lines = (word: string) => Array.from({ length: 10_000 }, () => `${word} ${ID}`);
    const flushes = Array.from({ length: 100_000 }, () => FLUSH);
    assert.equal(await turnsOf(v2(`want ${ID}`, 'done'), 2), 0);
    for (const [parts, version] of [
      [v2(...lines('want')), 2],
      [v2(...lines('have')), 2],
      [[...lines('want'), FLUSH, 'done'], 0],
      [[`want ${ID}`, FLUSH, ...lines('have'), 'done'], 0],
      [['command=ls-refs', DELIMITER, ...lines('ref-prefix'), FLUSH], 2],
      [[...v2(`want ${ID}`), ...flushes], 2],
    ] as const) {
      assert.ok((await turnsOf(parts, version)) >= 6, printed(parts.slice(0, 4)));
    }
  });

  test('is any mixture of lines, complete or cut, never makes the parser throw', async () => {
    const line = fc.constantFrom<Part>(
      FLUSH,
      DELIMITER,
      RESPONSE_END,
      'command=fetch',
      'command=ls-refs',
      'agent=a',
      'done',
      `want ${ID}`,
      `have ${ID}`,
      'deepen 1',
      'filter blob:none',
      'peel',
      `want ${ID} filter`,
      '\n',
      'shallow',
      '\0',
      'wait-for-done',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.constantFrom(0, 1, 2), fc.nat(), async (parts, version, cut) => {
        const whole = body(parts);
        await parseUploadPackRequest(whole, version, NO_TURNS);
        await parseUploadPackRequest(whole.subarray(0, cut % (whole.length + 1)), version, NO_TURNS);
      }),
      { numRuns: 2_000 },
    );
  });
});
