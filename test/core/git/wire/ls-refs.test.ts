/** ls-refs, compared byte for byte with `git upload-pack --stateless-rpc`. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { byRefOrder } from '../../../../core/git/ref-name.ts';
import type { AdvertisedRefs } from '../../../../core/git/wire/advertisement.ts';
import { LS_REFS_PREFIXES_LENGTH_MAX, LS_REFS_PREFIXES_MAX, lsRefsAnswer } from '../../../../core/git/wire/ls-refs.ts';
import { concatBytes, DELIMITER_PACKET, dataPacket, FLUSH_PACKET } from '../../../../core/git/wire/pkt-line.ts';
import { piecesOf, type RefPart } from '../../../../core/git/wire/ref-parts.ts';
import { parseUploadPackRequest } from '../../../../core/git/wire/upload-pack-request.ts';
import { objectId } from '../../../../core/kernel/ids.ts';
import { git, temporaryFolder } from '../../../support/git-process.ts';
import { createSampleRepository, inRuns, refsOf } from '../../../support/sample-repository.ts';

function request(args: readonly (string | Uint8Array)[]): Uint8Array {
  const head = ['command=ls-refs\n', 'agent=git/2.39.5', 'object-format=sha1', 'server-option=x'].map(dataPacket);
  return concatBytes([...head, DELIMITER_PACKET, ...args.map(dataPacket), FLUSH_PACKET]);
}

const NO_TURNS = async (): Promise<void> => undefined;

async function parsed(args: readonly (string | Uint8Array)[]) {
  const found = await parseUploadPackRequest(request(args), 2, NO_TURNS);
  assert.ok('kind' in found && found.kind === 'ls-refs', JSON.stringify(found));
  return found.request;
}

async function answer(refs: AdvertisedRefs, args: readonly (string | Uint8Array)[]): Promise<string> {
  return textOf(lsRefsAnswer(refs, await parsed(args)));
}

function textOf(parts: readonly RefPart[]): string {
  return Buffer.concat([...piecesOf(parts)]).toString('utf8');
}

describe('ls-refs', () => {
  const folder = temporaryFolder('ls-refs');
  let path: string;
  let refs: AdvertisedRefs;
  beforeAll(() => {
    path = createSampleRepository(folder.path);
    refs = { head: 'refs/heads/main', runs: inRuns(refsOf(path)) };
  });
  afterAll(() => folder.remove());

  function ofGit(repository: string, args: readonly (string | Uint8Array)[]): string {
    const env = { GIT_PROTOCOL: 'version=2' };
    return git(['upload-pack', '--stateless-rpc', repository], { input: request(args), env }).toString('utf8');
  }

  test('answers as git does, for random arguments', async () => {
    const names = [
      'HEAD',
      'H',
      'HEADS',
      '',
      'refs/',
      'refs/heads/',
      'refs/heads/m',
      'refs/heads/main',
      'refs/heads/main/',
    ];
    names.push(
      'refs/tags/',
      'refs/tags/v1',
      'refs/tags/v1-',
      'refs/notes',
      'refs/heads/feature/é',
      'refs/heads/\uffee',
      'main',
      '~',
    );
    const flag = fc.constantFrom('peel\n', 'symrefs', 'unborn\n');
    const arg = fc.oneof(
      flag,
      fc.constantFrom(...names).map((name) => `ref-prefix ${name}\n`),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(arg, { maxLength: 8 }), async (args) => {
        assert.equal(await answer(refs, args), ofGit(path, args));
      }),
      { numRuns: 60 },
    );
  });

  test('names a HEAD whose branch does not exist only with symrefs and unborn, as git does', async () => {
    git(['symbolic-ref', 'HEAD', 'refs/heads/later'], { cwd: path });
    try {
      const unborn = { ...refs, head: 'refs/heads/later' };
      assert.match(await answer(unborn, ['symrefs', 'unborn']), /^002funborn HEAD symref-target:refs\/heads\/later\n/);
      for (const args of [['symrefs', 'unborn'], ['unborn'], ['symrefs'], ['symrefs', 'unborn', 'ref-prefix refs/']]) {
        assert.equal(await answer(unborn, args), ofGit(path, args), args.join());
      }
    } finally {
      git(['symbolic-ref', 'HEAD', 'refs/heads/main'], { cwd: path });
    }
  });

  test('returns for an empty repository a flush, or its unborn HEAD', async () => {
    const empty: AdvertisedRefs = { head: 'refs/heads/main', runs: [] };
    assert.equal(await answer(empty, ['symrefs', 'peel']), '0000');
    assert.equal(await answer(empty, ['symrefs', 'unborn']), '002eunborn HEAD symref-target:refs/heads/main\n0000');
  });

  test('cuts a prefix that ends within a character to the characters before it', async () => {
    const cut = new Uint8Array(Buffer.from('ref-prefix refs/heads/feature/é').subarray(0, -1));
    assert.match(await answer(refs, [cut]), /refs\/heads\/feature\/é\n0000$/);
    assert.equal(await answer(refs, [cut]), ofGit(path, [cut]));
  });

  test('refuses an unknown argument, as git does', async () => {
    for (const arg of ['bogus', 'peel ', 'ref-prefix', 'symrefs=1', 'want x']) {
      const found = await parseUploadPackRequest(request([arg]), 2, NO_TURNS);
      assert.ok('refused' in found && found.refused === 'argument-unknown', arg);
      assert.throws(() => ofGit(path, [arg]), /unexpected line/);
    }
  });

  test('returns every ref from a number or length of prefixes on, and only those that match with fewer', async () => {
    const prefixes = (count: number) => Array.from({ length: count }, (_, index) => `ref-prefix refs/tags/${index}`);
    assert.equal(await answer(refs, prefixes(LS_REFS_PREFIXES_MAX - 1)), '0000');
    assert.equal(await answer(refs, prefixes(LS_REFS_PREFIXES_MAX)), await answer(refs, []));
    const long = (length: number) =>
      Array.from({ length: 32 }, (_, index) => `ref-prefix ${index.toString().padEnd(length / 32, 'x')}`);
    assert.equal(await answer(refs, long(LS_REFS_PREFIXES_LENGTH_MAX)), '0000');
    assert.equal(await answer(refs, [...long(LS_REFS_PREFIXES_LENGTH_MAX), 'ref-prefix x']), await answer(refs, []));
  });

  test('finds the refs of the plain definition, among names before and after every prefix', async () => {
    const letter = fc.constantFrom('a', 'b', '/', '\uffee', '\u{1f600}');
    const word = fc.array(letter, { maxLength: 4 }).map((letters) => letters.join(''));
    fc.assert(
      fc.property(fc.uniqueArray(word), fc.array(word, { minLength: 1, maxLength: 6 }), (names, prefixes) => {
        const id = objectId('1'.repeat(40));
        const all = names.sort(byRefOrder).map((name) => ({ name, id, peeled: null }));
        const flags = { symrefs: false, peel: false, unborn: false };
        const expected = all.filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix)));
        const whole = { symrefs: false, peel: false, unborn: false, prefixes: [] };
        assert.equal(
          textOf(lsRefsAnswer({ head: 'x', runs: inRuns(all) }, { ...flags, prefixes })),
          textOf(lsRefsAnswer({ head: 'x', runs: [expected] }, whole)),
        );
      }),
      { numRuns: 1_000 },
    );
  });
});
