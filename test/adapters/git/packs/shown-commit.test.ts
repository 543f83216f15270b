/**
 * Commits in every encoding that `iconv -l` names, read as `git log --encoding=UTF-8` shows them.
 *
 * Invariants: git says what is right. Where glibc and the library differ, a table here has the encodings and bytes.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { NAMED_ENCODINGS } from '../../../../adapters/git/packs/encoding-names.ts';
import { parseCommit, parseTagObject } from '../../../../adapters/git/packs/object-parsing.ts';
import { objectId } from '../../../../core/kernel/ids.ts';
import { temporaryFolder, testRepository } from '../../../support/git.ts';
import { needs } from '../../../support/optional-suites.ts';
import { rawEntry, rawId, rawPack } from '../../../support/raw-pack.ts';
import { createDice } from '../../../support/seeded.ts';
import { UNDECODED_ENCODINGS } from '../../../support/undecoded-encodings.ts';

const EMPTY_TREE = objectId('4b825dc642cb6eb9a060e54bf8d69288fbee4904');
/** In UTF-8, Latin-1, GBK, EUC-KR, Shift_JIS, none and ISO-2022-JP; each is wrong in most other encodings. */
const TEXTS = [
  'plain',
  'gr\xc3\xb6\xc3\x9fe',
  'Gr\xf6\xdfe',
  '\xc4\xe3\xba\xc3',
  '\xbe\xc8\xb3\xe7',
  '\x93\xfa\x96\x7b',
  '\x81\xff',
  '\x1b$BF|K\\\x1b(B',
];

/**
 * Where glibc and the decoders here differ, by a name of the encoding: what is shown here is another character of the
 * same look, or the bytes as they are.
 */
const DIFFERENT: { readonly [name: string]: string } = {
  '1046': '83-86 a1-a3 a5 d8 f6',
  CP1133: 'a0 df ff',
  CP1161: '1a 1c 7f',
  '856': '1a 1c 7f ee fa',
  CP922: 'af',
  'KOI8-RU': '93 96-99 9b-9d 9f',
  CSMACINTOSH: 'bd c6 db f0',
  CP1255: 'ca',
  CP1258: 'd3de d6de dade f3de f6de fade',
  'TCVN-5712': '95b2 e3b2 f3b2',
  'BIG-5': '80',
  'BIG5-HKSCS':
    '80 8e69 8e6f 8e7e 8eab 8eb4 8ecd 8ed0 8f57 8f69 8f6e 8fcb-8fcc 8ffe 906d 907a 90dc 90f1 91bf 9244 ' +
    '92af-92b2 92c8 92d1 9447 94ca 95d9 9644 96ed 96fc 9b76 9b78 9b7b 9bc6 9bde 9bec 9bf6 9c42 9c53 9c62 9c68 ' +
    '9c6b 9c77 9cbc-9cbd 9cd0 9d57 9d5a 9dc4 9ea9 9eef 9efd 9f60 9f66 9fcb 9fd8 a063 a077 a0d5 a0df a0e4 a145 ' +
    'a14e a15a a1c2-a1c3 a1c5 a1e3 a1f2-a1f3 a1fe a240-a242 a244 a246-a247 a2cc a2ce a3c0-a3e1 c6cf c6d3 c6d5 ' +
    'c6d7 c6de-c6df fa5f fa66 fabd fac5 fad5 fb48 fbb8 fbf3 fbf9 fc4f fc6c fcb9 fce2 fcf1 fdb7-fdb8 fdbb fdf1 ' +
    'fe52 fe6f feaa fedd',
  'CN-GB': 'a1a4 a1aa a2a1-a2aa a6e0-a6eb a6ee-a6f2 a6f4-a6f5 a8bb a8bd-a8be a8c0',
  CSEUCKR: '80-9f a2e8',
  CSEUCPKDFMTJAPANESE: '80-8d 90-9f a1c1-a1c2 a1dd a1f1-a1f2 a2cc',
  CSSHIFTJIS: '5c 7e 8160-8161 817c 8191-8192 81ca',
  CP932: 'f941-f97e f980-f9fc',
  GB18030: 'a3a0 fe51-fe53 fe6c fe76 fe91 82359037-82359039 82359130-82359134 84318236-84318239 84318330-84318335',
  // The first six are characters of the same look; the rows behind them are those of NEC and IBM.
  CSISO2022JP: '2141-2142 215d 2171-2172 224c 2d21-2d7e 7921-7c7e',
};

interface Written {
  readonly encoding: string;
  /** Stands in the author's name and in the message. */
  readonly text: Buffer;
}

describe('commits in other encodings', needs('iconv'), () => {
  const folder = temporaryFolder('encodings');
  const repository = testRepository(join(folder.path, 'repository'));
  afterAll(() => folder.remove());

  /** Returns the commits that are not read as git shows them. */
  const readOtherwise = (commits: readonly Written[]): readonly string[] => {
    const objects = commits.map(commitBytes);
    const entries = objects.map((bytes) => rawEntry({ type: 'commit', bytes }));
    repository.git(['index-pack', '--stdin'], { input: rawPack(entries) });
    const input = objects.map((bytes) => `${rawId('commit', bytes)}\n`).join('');
    const format = '--format=%an%x00%cn%x00%B%x00';
    const output = repository.git(['log', '--no-walk=unsorted', '--stdin', '--encoding=UTF-8', format], { input });
    const fields = output.toString('utf8').split('\0');
    // A line feed ends each record, and stands before the first field of the next.
    const shownAt = (at: number) =>
      fields
        .slice(3 * at, 3 * at + 3)
        .join('\0')
        .slice(Math.min(at, 1));
    return commits.flatMap(({ encoding, text }, at) => {
      const commit = parseCommit(EMPTY_TREE, objects[at] ?? Buffer.alloc(0)) ?? assert.fail('no commit');
      const read = [commit.author.name, commit.committer.name, commit.message].join('\0');
      const shown = shownAt(at);
      return read === shown ? [] : [`${encoding} ${text.toString('hex')} ${JSON.stringify([read, shown])}`];
    });
  };

  test('are read as git shows them, whatever the name of the encoding', () => {
    const decoded = iconvNames().filter((name) => !UNDECODED_ENCODINGS.includes(name));
    assert.ok(decoded.length > 400);
    const names = [
      ...decoded,
      'latin-1',
      'LATIN-1',
      'iso8859-1',
      'utf-8',
      'cp 1252',
      'L1//TRANSLIT',
      'L1//',
      'L1/',
      'L1 ',
      'base64',
      'hex',
      'latin-2',
      'win1251',
    ];
    const found = readOtherwise(names.flatMap((encoding) => TEXTS.map((text) => ({ encoding, text: latin1(text) }))));
    assert.deepEqual(found.filter(isUnexpected), []);
  });

  test('are read as git shows them, whatever the bytes', () => {
    const dice = createDice(7);
    const byteFrom = (first: number, last: number) => first + dice.below(last - first + 1);
    const high = () => byteFrom(0xa1, 0xfe);
    const commits = NAMED_ENCODINGS.flatMap(({ names, codec, form, composes }) => {
      const random = (make: () => number[], isWanted: boolean) => Array.from({ length: isWanted ? 2_000 : 0 }, make);
      const isPaired = form !== undefined || ['cp936', 'cp949', 'big5hkscs'].includes(codec);
      const longer = [
        ...random(() => [byteFrom(0x81, 0xfe), byteFrom(0x21, 0xfe)], isPaired),
        ...random(() => [0x8f, high(), high()], codec === 'eucjp'),
        ...random(() => [byteFrom(0x41, 0xfe), byteFrom(0xb0, 0xf2)], composes === true),
        ...random(
          () => [byteFrom(0x81, 0xfe), byteFrom(0x30, 0x39), byteFrom(0x81, 0xfe), byteFrom(0x30, 0x39)],
          codec === 'gb18030',
        ),
        ...random(
          () => [0x1b, 0x24, 0x42, byteFrom(0x21, 0x7e), byteFrom(0x21, 0x7e), 0x1b, 0x28, 0x42],
          codec === 'iso-2022-jp',
        ),
      ];
      const single = Array.from({ length: 254 }, (_, at) => [at + 2]);
      const texts = new Set([...single, ...longer].map((bytes) => Buffer.from(bytes).toString('hex')));
      const [encoding = ''] = names.split(' ');
      return [...texts].map((text) => ({ encoding, text: Buffer.from(text, 'hex') }));
    });
    const found = readOtherwise(commits.filter(({ text }) => !text.includes('\n')));
    assert.deepEqual(found.filter(isUnexpected), []);
    // Each difference in the table is one, so that the table can be believed.
    for (const name of Object.keys(DIFFERENT))
      assert.ok(
        found.some((line) => line.startsWith(`${name} `)),
        name,
      );
  });

  test('keep their bytes where iconv knows an encoding that is not decoded here', () => {
    for (const encoding of UNDECODED_ENCODINGS) {
      const bytes = commitBytes({ encoding, text: latin1('gr\xc3\xb6\xc3\x9fe \xff') });
      assert.equal(parseCommit(EMPTY_TREE, bytes)?.message, 'größe \ufffd end\n');
    }
  });
});

test('a tag is read as git shows it, which looks for no encoding in tags', () => {
  const folder = temporaryFolder('tag-encodings');
  try {
    const repository = testRepository(join(folder.path, 'repository'));
    const target = repository.commit({ a: '1' });
    const headers = `object ${target}\ntype commit\ntag v1\ntagger J\xfcrgen <j@example.org> 1 +0000\nencoding ISO-8859-1`;
    const bytes = latin1(`${headers}\n\nGr\xfc\xdfe\n`);
    const id = repository.object('tag', bytes);
    repository.git(['update-ref', 'refs/tags/v1', id]);
    const shown = repository.git(['for-each-ref', '--format=%(taggername)%00%(contents)', 'refs/tags/v1']).toString();
    const tag = parseTagObject(id, bytes);
    assert.equal(`${tag.tagger?.name}\0${tag.message}\n`, shown);
  } finally {
    folder.remove();
  }
});

/** Returns whether the table does not have it. */
function isUnexpected(line: string): boolean {
  const [encoding = '', hex = ''] = line.split(' ');
  const names =
    NAMED_ENCODINGS.find(({ names: listed }) => listed.split(' ').includes(encoding))?.names.split(' ') ?? [];
  const bytes = Buffer.from(hex, 'hex');
  return !names.some((name) => (DIFFERENT[name] ?? '').split(' ').some((span) => isWithin(bytes, span)));
}

/** Returns whether a text holds a sequence of bytes of the span, which is one in hex, or two with a hyphen. */
function isWithin(text: Buffer, span: string): boolean {
  const [first = '', last = first] = span.split('-');
  const length = first.length / 2;
  if (length === 0) return false;
  return text.some((_, at) => {
    const found = text.subarray(at, at + length).toString('hex');
    return found.length === first.length && found >= first && found <= last;
  });
}

function latin1(text: string): Buffer {
  return Buffer.from(text, 'latin1');
}

function iconvNames(): readonly string[] {
  const { stdout } = spawnSync('iconv', ['-l'], { encoding: 'utf8' });
  return stdout.split('\n').flatMap((line) => {
    const name = line.trim().replace(/\/+$/, '');
    return name === '' ? [] : [name];
  });
}

function commitBytes({ encoding, text }: Written): Buffer {
  return Buffer.concat([
    Buffer.from(`tree ${EMPTY_TREE}\nauthor A `),
    text,
    Buffer.from(` B <a@example.org> 1 +0000\ncommitter C <c@example.org> 1 +0000\nencoding ${encoding}\n\n`),
    text,
    Buffer.from(' end\n'),
  ]);
}
