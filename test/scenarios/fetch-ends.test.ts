/**
 * Every way in which git can end a fetch (docs/git-path.md, Ends of a fetch): what the client is told, and whether the
 * log and the metrics show an outage.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, test } from 'vitest';
import { suiteEnding } from '../support/cleanup.ts';
import { filesBelow } from '../support/files-below.ts';
import { DELIMITER, FLUSH, packet, postService, type WireTarget } from '../support/git-wire.ts';
import { createDice } from '../support/seeded.ts';
import {
  commitFile,
  createAccount,
  createRepository,
  git,
  gitUrl,
  newWorkTree,
  type Strata,
  startStrata,
  tryGit,
} from '../support/strata.ts';
import { tempDir } from '../support/temp-dir.ts';

const VERSIONS = [0, 1, 2] as const;
type Version = (typeof VERSIONS)[number];

/** Later than every commit of the test, in seconds. */
const LATER = 4_102_444_800;
const NO_COMMITS = 'no commits selected for shallow requests';
const UNKNOWN = 'f'.repeat(40);

interface Ids {
  readonly root: string;
  readonly tip: string;
  readonly tree: string;
  readonly blob: string;
  readonly tag: string;
}

interface Served extends Ids {
  readonly strata: Strata;
  readonly target: WireTarget;
  readonly work: string;
}

/** `main` and `v1` have one name each; a branch and a tag have the name `both`. */
async function serve(ending: Parameters<typeof startStrata>[0], env: Record<string, string> = {}): Promise<Served> {
  const strata = await startStrata(ending, { env });
  const account = await createAccount(strata, 'ada');
  const url = await createRepository(strata, account, 'app');
  const work = await newWorkTree(ending);
  const root = (await git(work, ['rev-parse', 'HEAD'])).trim();
  await git(work, ['tag', '-a', '-m', 'One', 'v1']);
  await git(work, ['branch', 'both']);
  await git(work, ['tag', 'both']);
  const tip = await commitFile(work, 'file', 'content\n');
  await git(work, ['push', '--quiet', '--mirror', url]);
  const [tree = '', blob = '', tag = ''] = (await git(work, ['rev-parse', 'main^{tree}', 'main:file', 'v1'])).split(
    '\n',
  );
  return { strata, target: { strata, account, name: 'app' }, work, root, tip, tree, blob, tag };
}

/** The body of a fetch. Of v0 and v1, `wants` and `boundary` stand before the flush, and `haves` behind it. */
interface Fetch {
  readonly wants?: readonly string[];
  readonly boundary?: readonly string[];
  readonly haves?: readonly string[];
  readonly end?: string | null;
}

const CAPABILITIES = ' side-band-64k ofs-delta no-progress multi_ack_detailed filter';

function bodyOf(version: Version, { wants = [], boundary = [], haves = [], end = 'done' }: Fetch): Buffer {
  const ends = end === null ? [] : [end];
  const packets = (lines: readonly string[]): Buffer[] => lines.map((line) => packet(`${line}\n`));
  if (version === 2) {
    const lines = [...wants.map((id) => `want ${id}`), ...boundary, ...haves, ...ends];
    return Buffer.concat([packet('command=fetch\n'), DELIMITER, ...packets(lines), FLUSH]);
  }
  const first = wants.map((id, at) => `want ${id}${at === 0 ? CAPABILITIES : ''}`);
  return Buffer.concat([...packets([...first, ...boundary]), FLUSH, ...packets([...haves, ...ends])]);
}

function send(target: WireTarget, version: Version, fetch: Fetch) {
  return postService(target, 'git-upload-pack', bodyOf(version, fetch), {
    headers: { 'Git-Protocol': `version=${version}` },
  });
}

const error = (told: string): string => packet(`ERR ${told}`).toString();

/** Lines of the log that name a fault or an outage, and the requests that the metrics count as failed. */
async function faultsOf(strata: Strata): Promise<readonly string[]> {
  const lines = strata.log().split('\n');
  const metrics = (await (await fetch(`${strata.url}/metrics`)).text()).split('\n');
  return [
    ...lines.filter((line) => /"level":"(?:warn|error|fatal)"/.test(line)),
    ...metrics.filter((line) => /^strata_(?:git|api)_request_seconds_count\{.*status="5/.test(line)),
  ];
}

describe('A fetch that its client cannot have', () => {
  const ending = suiteEnding();
  let served: Served;
  beforeAll(async () => {
    served = await serve(ending);
  });

  const rows: readonly (readonly [
    string,
    (ids: Ids) => { readonly fetch: Fetch; readonly told: string; readonly versions?: readonly Version[] },
  ])[] = [
    [
      'since a time later than every commit',
      ({ tip }) => ({ fetch: { wants: [tip], boundary: [`deepen-since ${LATER}`] }, told: NO_COMMITS }),
    ],
    [
      'without what the wanted tip reaches',
      ({ tip }) => ({ fetch: { wants: [tip], boundary: ['deepen-not main'] }, told: NO_COMMITS }),
    ],
    [
      'of a blob since a time',
      ({ blob }) => ({ fetch: { wants: [blob], boundary: ['deepen-since 1'] }, told: NO_COMMITS }),
    ],
    [
      'of nothing since a time',
      () => ({ fetch: { boundary: ['deepen-since 1'], end: null }, told: NO_COMMITS, versions: [0, 1] }),
    ],
    [
      'by a client that waits for the pack, of nothing since a time',
      () => ({ fetch: { boundary: ['deepen-since 1', 'wait-for-done'] }, told: NO_COMMITS, versions: [2] }),
    ],
    [
      'without a name of a branch and a tag',
      ({ tip }) => ({ fetch: { wants: [tip], boundary: ['deepen-not both'] }, told: 'ambiguous deepen-not: both' }),
    ],
    [
      'without a name of no ref',
      ({ tip }) => ({ fetch: { wants: [tip], boundary: ['deepen-not x'] }, told: 'deepen-not is not a ref: x' }),
    ],
    [
      'without a long name, which is quoted in part',
      ({ tip }) => ({
        fetch: { wants: [tip], boundary: [`deepen-not \u2028${'x'.repeat(4_000)}`] },
        told: `deepen-not is not a ref: ${'x'.repeat(99)}`,
      }),
    ],
    [
      'without a name that holds a control character',
      ({ tip }) => ({
        fetch: { wants: [tip], boundary: ['deepen-not a\u001b[2Jb'] },
        told: 'Invalid deepen: deepen-not a [2Jb',
      }),
    ],
    ...(['tree', 'blob', 'tag'] as const).map(
      (kind) =>
        [
          `by a shallow clone that ends at a ${kind}`,
          ({ tip, ...ids }: Ids) => ({
            fetch: { wants: [tip], boundary: [`shallow ${ids[kind]}`] },
            told: `invalid shallow object ${ids[kind]}`,
          }),
        ] as const,
    ),
    [
      'of an object that the repository lacks',
      () => ({ fetch: { wants: [UNKNOWN] }, told: `upload-pack: not our ref ${UNKNOWN}` }),
    ],
    [
      'with a depth and a time',
      ({ tip }) => ({
        fetch: { wants: [tip], boundary: ['deepen 1', 'deepen-since 0'] },
        told: 'deepen and deepen-since (or deepen-not) cannot be used together',
      }),
    ],
    [
      'by a body that ends between its haves',
      ({ root, tip }) => ({
        fetch: { wants: [tip], haves: [`have ${root}`], end: null },
        told: 'the request ends too early',
        versions: [0, 1],
      }),
    ],
    [
      'with a filter before the capability for it',
      ({ tip }) => ({
        fetch: { boundary: ['filter blob:none', `want ${tip} filter`] },
        told: 'filtering capability not negotiated',
        versions: [0, 1],
      }),
    ],
  ];

  for (const [name, row] of rows) {
    test(`${name}, is answered with the reason alone`, async () => {
      const { fetch, told, versions = VERSIONS } = row(served);
      for (const version of versions) {
        // The second answer comes from what the node keeps.
        for (const attempt of [1, 2]) {
          const { status, bytes } = await send(served.target, version, fetch);
          assert.deepEqual([status, bytes.toString()], [200, error(told)], `version ${version}, attempt ${attempt}`);
        }
      }
      assert.deepEqual(await faultsOf(served.strata), []);
    });
  }

  test('after it has negotiated, is answered with the reason, perhaps behind what both have', async () => {
    const { target, root, tip, strata } = served;
    const fetch = { wants: [tip], haves: [`have ${root}`], boundary: [`deepen-since ${LATER}`], end: null };
    const { status, bytes } = await send(target, 2, fetch);
    assert.equal(status, 200);
    assert.match(bytes.toString(), new RegExp(`^(?:0014acknowledgments\n.*)?${error(NO_COMMITS)}$`, 's'));
    assert.deepEqual(await faultsOf(strata), []);
  });

  test('since the epoch, is answered with all commits', async () => {
    for (const version of VERSIONS) {
      const { bytes } = await send(served.target, version, { wants: [served.tip], boundary: ['deepen-since 0'] });
      assert.match(bytes.toString('latin1'), /PACK\0\0\0\u0002/, `version ${version}`);
      assert.doesNotMatch(bytes.toString('latin1'), /ERR /);
    }
  });

  test('by git itself, ends git with the reason', async (context) => {
    const { strata, target } = served;
    const url = gitUrl(strata, target.account, target.name);
    const clones = await tempDir(context);
    await git(clones, ['clone', '--quiet', '--depth=1', url, 'own']);
    for (const version of VERSIONS) {
      for (const [option, told] of [
        [`--shallow-since=@${LATER} +0000`, NO_COMMITS],
        ['--shallow-exclude=main', NO_COMMITS],
        ['--shallow-exclude=both', 'ambiguous deepen-not: both'],
        ['--shallow-exclude=x', 'deepen-not is not a ref: x'],
      ] as const) {
        const args = ['-c', `protocol.version=${version}`];
        const cloned = await tryGit(clones, [...args, 'clone', '--single-branch', '-b', 'main', option, url, 'none']);
        assert.deepEqual([cloned.code, /^fatal: .*$/m.exec(cloned.stderr)?.[0]], [128, `fatal: remote error: ${told}`]);
        const fetched = await tryGit(path.join(clones, 'own'), [...args, 'fetch', option, 'origin', 'main']);
        assert.deepEqual([fetched.code, fetched.stderr.includes(`remote error: ${told}`)], [128, true], fetched.stderr);
      }
    }
    assert.deepEqual(await faultsOf(strata), []);
  });

  test('whatever its lines are, ends with an answer, and never as an outage', async () => {
    const { target, strata, root, tip, tree, blob, tag } = served;
    const dice = createDice(20_261_129);
    const ids = [root, tip, tree, blob, tag];
    const some = <Item>(items: readonly Item[], most: number): Item[] =>
      Array.from({ length: dice.below(most + 1) }, () => dice.pick(items));
    const boundaries = [
      ...[1, 2, 2_147_483_646, 2_147_483_647].map((depth) => `deepen ${depth}`),
      ...[0, 1, LATER, 4_294_967_295, Number.MAX_SAFE_INTEGER].map((time) => `deepen-since ${time}`),
      ...['main', 'HEAD', 'v1', 'both', 'x', 'refs/tags/both'].map((name) => `deepen-not ${name}`),
      ...[...ids, UNKNOWN].map((id) => `shallow ${id}`),
      ...['blob:none', 'blob:limit=0', 'tree:0', 'tree:16', 'sparse:oid=main'].map((filter) => `filter ${filter}`),
      'deepen-relative',
      'include-tag',
      'thin-pack',
    ];
    for (let at = 0; at < 150; at += 1) {
      const version = dice.pick(VERSIONS);
      const haves = some([...ids, UNKNOWN], 2).map((id) => `have ${id}`);
      const end = dice.pick(['done', null, 'wait-for-done']);
      const request = { wants: some(ids, 2), boundary: some(boundaries, 2), haves, end };
      const { status, bytes } = await send(target, version, request);
      assert.equal(status, 200, `version ${version}: ${JSON.stringify(request)}: ${bytes.toString()}`);
    }
    assert.deepEqual(await faultsOf(strata), []);
  });
});

describe('A fetch that the service cannot answer', () => {
  const ending = suiteEnding();
  let served: Served;
  let marker: string;
  /** A folder in which upload-pack finds the git that packs. */
  let exec: string;
  beforeAll(async () => {
    const folder = await tempDir(ending);
    marker = path.join(folder, 'ends');
    await mkdir(path.join(folder, 'bin'));
    await writeFile(path.join(folder, 'bin', 'git'), gitThatEnds(marker));
    await chmod(path.join(folder, 'bin', 'git'), 0o755);
    exec = path.join(folder, 'exec');
    await mkdir(exec);
    await writeFile(path.join(exec, 'git'), PACKS_NOTHING);
    await chmod(path.join(exec, 'git'), 0o755);
    served = await serve(ending, { PATH: `${path.join(folder, 'bin')}:${process.env['PATH']}` });
  });

  const DOWN = 'The service cannot reach its storage, try again\n';
  const LARGE = 'This repository holds objects that are larger than this service reads\n';
  const ends: readonly (readonly [string, string, number, string])[] = [
    ['git is killed', 'kill -9 $$', 503, DOWN],
    ['git finds a bad object', 'echo "fatal: bad object HEAD" >&2; exit 128', 503, DOWN],
    ['git names a reason of the client among other lines', `echo "fatal: ${NO_COMMITS}" >&2; kill -9 $$`, 503, DOWN],
    ['git quotes one', `echo "fatal: bad ref: fatal: ${NO_COMMITS}" >&2; exit 128`, 503, DOWN],
    ['what git starts takes too long', 'echo "error: pack-objects died of signal 24" >&2; exit 128', 500, LARGE],
    ['git gets no more memory', 'echo "fatal: Out of memory, malloc failed" >&2; exit 128', 500, LARGE],
  ];
  for (const [name, script, status, told] of ends) {
    test(`because ${name}, is an outage, which the log tells`, async () => {
      const before = served.strata.log().length;
      await writeFile(marker, script);
      try {
        for (const version of VERSIONS) {
          // A depth of its own, so that no answer is kept.
          const fetch = { wants: [served.tip], boundary: [`deepen ${ends.findIndex(([of]) => of === name) + 10}`] };
          const answer = await send(served.target, version, fetch);
          assert.deepEqual([answer.status, answer.bytes.toString()], [status, told], `version ${version}`);
        }
      } finally {
        await rm(marker);
      }
      const lines = served.strata.log().slice(before).split('\n');
      const logged = lines.filter((line) => line.includes(`"operation":"fetch","status":${status},"error"`));
      assert.equal(logged.length, VERSIONS.length, lines.join('\n'));
    });
  }

  test('because what packs gets no more memory, and says so to the client alone, is too costly', async () => {
    const before = served.strata.log().length;
    await writeFile(marker, `GIT_EXEC_PATH=${exec}; export GIT_EXEC_PATH`);
    try {
      for (const version of VERSIONS) {
        // It may have begun when git ends: then its connection breaks.
        await send(served.target, version, { wants: [served.tip], boundary: ['deepen 9'] }).catch(() => null);
      }
    } finally {
      await rm(marker);
    }
    const lines = served.strata.log().slice(before).split('\n');
    const logged = lines.filter((line) => line.includes('"operation":"fetch","status":500,"error"'));
    assert.equal(logged.length, VERSIONS.length, lines.join('\n'));
    assert.ok(
      logged.every((line) => line.includes('reading-too-costly')),
      logged.join('\n'),
    );
  });

  test('because a stored layer is gone, is an outage of the objects', async () => {
    const { strata, target, tip } = served;
    const files = await filesBelow(strata.dataDir);
    const layers = files.filter((file) => file.endsWith('.tar'));
    assert.notEqual(layers.length, 0, files.join('\n'));
    for (const file of layers) await rm(path.join(strata.dataDir, file));
    await rm(path.join(strata.dataDir, 'cache'), { recursive: true });
    for (const version of VERSIONS) {
      const answer = await send(target, version, { wants: [tip], boundary: ['deepen 3'] });
      assert.deepEqual(
        [answer.status, answer.bytes.toString()],
        [503, 'Stored objects of this repository are damaged or missing: whoever keeps its storage must act\n'],
      );
    }
    assert.notDeepEqual(await faultsOf(strata), []);
  });
});

/** What git pack-objects does over too many objects, after it has read what it is to pack. */
const PACKS_NOTHING = `#!/bin/sh
cat >/dev/null
echo "fatal: Out of memory, malloc failed (tried to allocate 57344 bytes)" >&2
exit 128
`;

/** The real git, whose upload-pack ends as the marker says as long as there is one. */
function gitThatEnds(marker: string): string {
  const program = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
  return `#!/bin/sh\nif [ "$1" = upload-pack ] && [ -e ${marker} ]; then . ${marker}; fi\nexec ${program} "$@"\n`;
}
