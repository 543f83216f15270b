/**
 * Small packs for a repository with one commit, each with nothing or something wrong in it: in the pack, in its deltas,
 * or in the commits and trees that it brings.
 *
 * Invariants: a seed always gives the same pack. Ids are recomputed after each change, so that what is wrong is found
 * only by who looks at it.
 */
import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import type { ObjectType } from '../../core/git/objects.ts';
import { deltaSize, type RawEntry, rawEntry, rawId } from './raw-pack.ts';
import { createDice, type Dice } from './seeded.ts';

export interface RawObject {
  readonly type: ObjectType;
  readonly bytes: Buffer;
}

interface Entry {
  readonly mode: string;
  readonly name: string;
  readonly id: string;
}

const PERSON = 'A U Thor <author@example.org> 1700000000 +0000';
const TEXT = Array.from({ length: 40 }, (_, line) => `Line ${line} of a file that many commits change\n`).join('');

const blob = (text: string): RawObject => ({ type: 'blob', bytes: Buffer.from(text, 'latin1') });
export const tree = (entries: readonly Entry[]): RawObject => ({
  type: 'tree',
  bytes: Buffer.concat(
    entries.map(({ mode, name, id }) =>
      Buffer.concat([Buffer.from(`${mode} ${name}\0`, 'latin1'), Buffer.from(id, 'hex')]),
    ),
  ),
});
const commit = (lines: readonly string[]): RawObject => ({
  type: 'commit',
  bytes: Buffer.from(lines.join('\n'), 'latin1'),
});
export const idOf = ({ type, bytes }: RawObject): string => rawId(type, bytes);

export const GUIDE = blob(TEXT);
/** Stored as a chain of deltas. */
const GUIDES = [1, 2, 3].map((version) => blob(TEXT.replace(`Line ${version} `, `Line ${version} of a version `)));
const ATTRIBUTES = blob('* text=auto\n');
const LONG_ATTRIBUTES = blob(`${'a'.repeat(2_048)}\n`);
const TARGET = blob('README.md');
const MODULES = blob('[submodule "x"]\n\tpath = x\n\turl = -u./evil\n');
export const DOCS: readonly Entry[] = [
  { mode: '100644', name: 'guide.md', id: idOf(GUIDE) },
  { mode: '100644', name: 'notes.md', id: idOf(GUIDE) },
];
const ROOT: readonly Entry[] = [
  { mode: '100644', name: '.gitattributes', id: idOf(ATTRIBUTES) },
  { mode: '40000', name: '.github', id: idOf(tree(DOCS)) },
  { mode: '100644', name: '.gitignore', id: idOf(GUIDE) },
  { mode: '100644', name: 'README.md', id: idOf(GUIDE) },
  { mode: '40000', name: 'docs', id: idOf(tree(DOCS)) },
  { mode: '120000', name: 'link', id: idOf(TARGET) },
  { mode: '160000', name: 'module', id: '1'.repeat(40) },
  { mode: '100755', name: 'run.sh', id: idOf(GUIDE) },
];
const FIRST = commit([`tree ${idOf(tree(ROOT))}`, `author ${PERSON}`, `committer ${PERSON}`, '', 'First\n']);
const SECOND = commit([
  `tree ${idOf(tree(ROOT))}`,
  `parent ${idOf(FIRST)}`,
  `author ${PERSON}`,
  `committer ${PERSON}`,
  '',
  'Second\n',
]);

/** What the repository holds before: also blobs that become dangerous only by a name. */
const COMMITTED: readonly RawObject[] = [
  GUIDE,
  ATTRIBUTES,
  LONG_ATTRIBUTES,
  TARGET,
  MODULES,
  tree(DOCS),
  tree(ROOT),
  FIRST,
  SECOND,
  ...GUIDES,
];

/** The entries of the pack that holds them. */
export function committedEntries(): readonly Buffer[] {
  const bases = new Map<RawObject, RawObject>([[SECOND, FIRST]]);
  for (const [at, guide] of GUIDES.entries()) bases.set(guide, GUIDES[at - 1] ?? GUIDE);
  return COMMITTED.map((object) => {
    const base = bases.get(object);
    if (base === undefined) return rawEntry(object);
    return rawEntry({ type: 'ref-delta', base: idOf(base), bytes: deltaOf(base.bytes, object.bytes) });
  });
}

const NAMES = [
  ...['.git', '.GIT', '.git ', '.git.', '.git . .', 'git~1', 'GIT~1', '.git\\x', '.git:x', '.git/x', '.gitmodules'],
  ...['.GitModules', '.gitmodules ', 'gitmod~1', 'GI7EBA~1', '.gitattributes', '.GITATTRIBUTES', '.gitattributes.'],
  ...['gitatt~1', '.mailmap', '.gitignore', '.', '..', '...', '. ', '', 'a/b', 'a\\b', 'a:b', 'a~1', 'a b', '-x', ' '],
  ...[
    '.g\xe2\x80\x8cit',
    '.git\xe2\x80\x8c',
    '\xe2\x80\x8e.git',
    '.gi\xef\xbb\xbft',
    'f\xc3\xbcr',
    '\xff',
    '\x7f',
    '\x01',
  ],
  ...['docs', 'docs.', 'docs0', 'docs-', 'README.md', 'run.sh', 'x'.repeat(255), 'x'.repeat(256), 'x'.repeat(5_000)],
];
const MODES = [
  '100644',
  '100755',
  '120000',
  '160000',
  '40000',
  '040000',
  '100664',
  '100600',
  '0',
  '',
  '1006440',
  '644',
];
const PEOPLE = [
  ...[
    PERSON,
    'A <> 0 +0000',
    ' <a@b> 1 +0000',
    '<a@b> 1 +0000',
    'A <a@b>1 +0000',
    'A <a@b> 01 +0000',
    'A<a@b> 1 +0000',
  ],
  ...['A <a@b> 1 +000', 'A <a@b> 1 0000', 'A <a@b> 99999999999999999999 +0000', 'A <a@b> 1', 'A <a@b> -1 +0000', 'A'],
  ...['A <a<b> 1 +0000', 'A > <a@b> 1 +0000', 'A <a@b> 9999999999 -2359', 'A\0 <a@b> 1 +0000', 'A <a@b> 1 +0000 ', ''],
  ...['\xff <\xfe> 1 +0000', 'A  <a@b> 1 +0000', 'A <a@b>  1 +0000', 'A <a@b> 1 +00000', 'A <a b> 1 +0000'],
];

export interface MutatedPack {
  readonly bytes: Buffer;
  /** Whether nothing was made wrong. */
  readonly isSound: boolean;
}

/** Each pack at this distance holds many objects, of which as many as are allowed. */
const CROWDED_EACH = 20;
const CROWD_MAX = 508;

export function mutatedPack(seed: number): MutatedPack {
  const crowd = seed % CROWDED_EACH === 0 ? seed % CROWD_MAX : 0;
  const dice = createDice(seed);
  const isSound = dice.chance(0.1);
  const objects = [...mutatedObjects(dice, isSound)];
  if (crowd > 0) objects.push(...crowdOf(dice, objects, crowd, isSound));
  const entries = encoded(dice, objects, isSound);
  return { bytes: isSound ? packed(entries) : mutatedBytes(dice, entries), isSound };
}

/** The objects of a commit that changes a file, most of the time with something wrong in one of them. */
function mutatedObjects(dice: Dice, isSound: boolean): readonly RawObject[] {
  const wrong = isSound
    ? 'nothing'
    : dice.pick(['nothing', 'tree', 'tree', 'tree', 'commit', 'commit', 'bytes'] as const);
  const depth = wrong === 'tree' ? dice.below(2) : -1;
  const file = blob(TEXT.replace(`Line ${dice.below(40)} `, `Line changed by ${dice.below(1_000_000)} `));
  const attributes = dice.pick([LONG_ATTRIBUTES, MODULES, blob(`${'b'.repeat(2_047 + dice.below(3))}\n`)]);
  const more = !isSound && dice.chance(0.2) ? [attributes] : [];
  const text = file.bytes.toString('latin1');
  for (let versions = dice.chance(0.2) ? dice.below(8) : 0; versions > 0; versions -= 1) {
    more.push(blob(`${text}Version ${versions}\n`));
  }
  if (!isSound && dice.chance(0.03)) more.push(tagOf(FIRST));
  const known = [idOf(file), ...COMMITTED.map(idOf), ...more.map(idOf), '0'.repeat(40), '2'.repeat(40)];
  const folder = mutatedTree(dice, known, replaced(DOCS, 'guide.md', idOf(file)), depth === 0);
  const root = mutatedTree(dice, known, replaced(ROOT, 'docs', idOf(folder)), depth === 1);
  const tip = mutatedCommit(dice, known, idOf(root), wrong === 'commit');
  const objects = [tip, root, folder, file, ...more];
  if (wrong !== 'bytes') return objects;
  const at = dice.below(objects.length);
  return objects.map((object, index) => (index === at ? { ...object, bytes: flipped(dice, object.bytes) } : object));
}

/** A history on the first of the objects, sometimes with one commit that is wrong or a parent that is no commit. */
function crowdOf(dice: Dice, [first]: readonly RawObject[], count: number, isSound: boolean): readonly RawObject[] {
  const wrong = !isSound && dice.chance(0.2) ? dice.below(count) : -1;
  const commits: RawObject[] = [];
  let parent = first === undefined ? idOf(FIRST) : idOf(first);
  for (let number = 0; number < count; number += 1) {
    const isWrong = number === wrong;
    const person = isWrong ? dice.pick(PEOPLE) : PERSON;
    const before = isWrong ? dice.pick([parent, idOf(GUIDE), '2'.repeat(40)]) : parent;
    const lines = [`tree ${idOf(tree(ROOT))}`, `parent ${before}`, `author ${person}`, `committer ${PERSON}`];
    const made = commit([...lines, '', `Number ${number}\n`]);
    parent = idOf(made);
    commits.push(made);
  }
  return commits;
}

function tagOf(object: RawObject): RawObject {
  const lines = [`object ${idOf(object)}`, `type ${object.type}`, 'tag v1', `tagger ${PERSON}`, '', 'A tag\n'];
  return { type: 'tag', bytes: Buffer.from(lines.join('\n')) };
}

function replaced(entries: readonly Entry[], name: string, id: string): readonly Entry[] {
  return entries.map((entry) => (entry.name === name ? { ...entry, id } : entry));
}

function mutatedTree(dice: Dice, known: readonly string[], entries: readonly Entry[], isWrong: boolean): RawObject {
  const made = [...entries];
  for (let changes = isWrong ? 1 + dice.below(2) : 0; changes > 0; changes -= 1) {
    const at = dice.below(made.length);
    const entry = made[at] ?? { mode: '100644', name: 'x', id: idOf(GUIDE) };
    const change = dice.pick(['name', 'name', 'mode', 'id', 'swap', 'twice', 'drop', 'add', 'special'] as const);
    if (change === 'name') made[at] = { ...entry, name: dice.pick(NAMES) };
    if (change === 'mode') made[at] = { ...entry, mode: dice.pick(MODES) };
    if (change === 'id') made[at] = { ...entry, id: dice.pick(known) };
    if (change === 'swap') made.splice(at, 1, ...made.splice(dice.below(made.length), 1, entry));
    if (change === 'twice') made.splice(dice.below(made.length), 0, entry);
    if (change === 'drop') made.splice(at, 1);
    // Files with rules of their own, and submodules, whose commits are nowhere.
    if (change === 'special') {
      const id = dice.pick([idOf(LONG_ATTRIBUTES), idOf(MODULES), '0'.repeat(40)]);
      const [name, mode] = dice.pick([
        ['.gitattributes', '100644'],
        ['.gitattributes', '120000'],
        ['.gitattributes', '40000'],
        ['.gitmodules', '100644'],
        ['module', '160000'],
      ] as const);
      made.splice(0, made.length, ...made.filter((other) => other.name !== name), { mode, name, id });
    }
    if (change === 'add') made.push({ mode: dice.pick(MODES), name: dice.pick(NAMES), id: dice.pick(known) });
    if (dice.chance(0.6)) made.sort((a, b) => (sortName(a) < sortName(b) ? -1 : 1));
  }
  return tree(made);
}

function sortName({ mode, name }: Entry): string {
  return mode === '40000' ? `${name}/` : name;
}

function mutatedCommit(dice: Dice, known: readonly string[], root: string, isWrong: boolean): RawObject {
  const lines = [`tree ${root}`, `parent ${idOf(FIRST)}`, `author ${PERSON}`, `committer ${PERSON}`, '', 'Second\n'];
  if (dice.chance(0.2)) lines.splice(2, 0, `parent ${idOf(SECOND)}`);
  for (let changes = isWrong ? 1 + dice.below(2) : 0; changes > 0; changes -= 1) {
    const at = dice.below(lines.length);
    const change = dice.pick([
      'person',
      'person',
      'unended',
      'id',
      'drop',
      'twice',
      'swap',
      'header',
      'empty',
      'carriage',
    ] as const);
    if (change === 'person') lines[2 + dice.below(2)] = `${dice.pick(['author', 'committer'])} ${dice.pick(PEOPLE)}`;
    if (change === 'unended') lines.splice(lines.length - 1 - dice.below(2), 2, 'no line feed');
    if (change === 'id') lines[dice.below(2)] = `${dice.pick(['tree', 'parent', 'Tree'])} ${dice.pick(known)}`;
    if (change === 'drop') lines.splice(at, 1);
    if (change === 'twice') lines.splice(at, 0, lines[at] ?? '');
    if (change === 'swap') lines.splice(at, 1, ...lines.splice(dice.below(lines.length), 1, lines[at] ?? ''));
    if (change === 'header')
      lines.splice(at, 0, dice.pick(['encoding latin1', 'gpgsig x\n y', 'x', 'x\0y', ' continued']));
    if (change === 'empty') lines.splice(at, 0, '');
    if (change === 'carriage') lines[at] = `${lines[at] ?? ''}\r`;
  }
  return commit(lines);
}

/** Each object as it is, or as a delta of a committed one, or of one of the pack. */
function encoded(dice: Dice, objects: readonly RawObject[], isSound: boolean): readonly Buffer[] {
  const order = dice.chance(0.3) ? objects.toReversed() : objects;
  const entries: { readonly object: RawObject; readonly offset: number; readonly bytes: Buffer }[] = [];
  let offset = 12;
  for (const object of order) {
    const earlier = entries.filter((entry) => entry.object.type === object.type);
    const bases = COMMITTED.filter(({ type }) => type === object.type);
    const form = dice.pick(['whole', 'whole', 'committed', 'committed', 'earlier', 'known', 'later'] as const);
    const before = earlier.length === 0 ? null : dice.pick(earlier);
    const later = order.slice(entries.length + 1).filter(({ type }) => type === object.type);
    const entry = (raw: RawEntry): Buffer => (isSound || !dice.chance(0.02) ? rawEntry(raw) : oddEntry(dice, raw));
    const delta = (base: RawObject): Buffer => {
      const made = deltaOf(base.bytes, object.bytes);
      return !isSound && dice.chance(0.03) ? wrongDelta(dice, made) : made;
    };
    let bytes = entry(object);
    if (form === 'committed' && bases.length > 0) {
      const base = dice.pick(bases);
      bytes = entry({ type: 'ref-delta', base: idOf(base), bytes: delta(base) });
    } else if (form === 'earlier' && before !== null) {
      bytes = entry({ type: 'ofs-delta', distance: offset - before.offset, bytes: delta(before.object) });
    } else if (form === 'known' && before !== null) {
      bytes = entry({ type: 'ref-delta', base: idOf(before.object), bytes: delta(before.object) });
    } else if (form === 'later' && later.length > 0 && !isSound) {
      const base = dice.pick(later);
      bytes = entry({ type: 'ref-delta', base: idOf(base), bytes: delta(base) });
    }
    entries.push({ object, offset, bytes });
    offset += bytes.length;
  }
  return entries.map(({ bytes }) => bytes);
}

function wrongDelta(dice: Dice, delta: Buffer): Buffer {
  const change = dice.below(5);
  if (change === 0) return delta.subarray(0, dice.below(6));
  if (change === 1) return Buffer.concat([delta, Buffer.from([dice.below(256)])]);
  // A copy of 64 KiB, and sizes in more bytes than they need.
  if (change === 2) return Buffer.concat([delta, Buffer.from([0x80])]);
  if (change === 3) return Buffer.concat([Buffer.from([0x80 | (delta[0] ?? 0), 0x80, 0]), delta.subarray(1)]);
  return flipped(dice, delta);
}

/** An entry with a size in more bytes than it needs, or deflated as git does not deflate. */
function oddEntry(dice: Dice, raw: RawEntry): Buffer {
  const length = raw.bytes.length;
  const deflated = deflateSync(raw.bytes);
  const usual = rawEntry(raw);
  const start = usual.subarray(0, usual.length - deflated.length);
  const change = dice.below(4);
  if (change === 0) return overlongEntry(usual, 1 + dice.below(10));
  if (change === 1) return Buffer.concat([start, deflateSync(raw.bytes, { level: 0, windowBits: 9 })]);
  if (change === 2) return Buffer.concat([start, deflateSync(Buffer.concat([raw.bytes, Buffer.from('x')]))]);
  return Buffer.concat([start, deflateSync(raw.bytes.subarray(0, length - 1))]);
}

/** The entry with this many more bytes of no value in its size. */
export function overlongEntry(entry: Buffer, more: number): Buffer {
  const end = entry.findIndex((byte) => byte < 0x80);
  const size = Buffer.from([...entry.subarray(0, end + 1), ...Array<number>(more).fill(0)]);
  for (let at = 0; at < size.length - 1; at += 1) size[at] = (size[at] ?? 0) | 0x80;
  return Buffer.concat([size, entry.subarray(end + 1)]);
}

/** A delta that copies what both begin and end with, and inserts the rest. */
function deltaOf(base: Buffer, result: Buffer): Buffer {
  const most = Math.min(base.length, result.length);
  let start = 0;
  while (start < most && base[start] === result[start]) start += 1;
  let end = 0;
  while (end < most - start && base[base.length - 1 - end] === result[result.length - 1 - end]) end += 1;
  const parts = [deltaSize(base.length), deltaSize(result.length), copy(0, start)];
  for (let at = start; at < result.length - end; at += 127) {
    const inserted = result.subarray(at, Math.min(at + 127, result.length - end));
    parts.push(Buffer.from([inserted.length]), inserted);
  }
  return Buffer.concat([...parts, copy(base.length - end, end)]);
}

function copy(offset: number, length: number): Buffer {
  if (length === 0) return Buffer.alloc(0);
  return Buffer.from([0xb3, offset & 0xff, offset >> 8, length & 0xff, length >> 8]);
}

function flipped(dice: Dice, bytes: Buffer): Buffer {
  const made = Buffer.from(bytes);
  for (let changes = 1 + dice.below(2); changes > 0 && made.length > 0; changes -= 1) {
    made[dice.below(made.length)] = dice.pick([dice.below(256), 0, 10, 32, 47, 255]);
  }
  return made;
}

function packed(entries: readonly Buffer[], count = entries.length, version = 2): Buffer {
  const head = Buffer.from('PACK\0\0\0\0\0\0\0\0', 'latin1');
  head.writeUInt32BE(version, 4);
  head.writeUInt32BE(count, 8);
  return sealed(Buffer.concat([head, ...entries]));
}

function sealed(body: Buffer): Buffer {
  return Buffer.concat([body, createHash('sha1').update(body).digest()]);
}

function mutatedBytes(dice: Dice, entries: readonly Buffer[]): Buffer {
  const change = dice.below(100);
  const some = dice.below(entries.length);
  if (change === 0) return packed(entries, entries.length + dice.pick([-1, 1, 1_000]));
  if (change === 1) return packed(entries, entries.length, dice.pick([1, 3, 4]));
  if (change === 2) return packed([...entries, entries[some] ?? Buffer.alloc(0)]);
  if (change === 3) return packed(entries.toSpliced(some, 1));
  if (change === 4) return Buffer.concat([packed(entries), Buffer.alloc(1 + dice.below(30))]);
  if (change === 5) return packed(entries).subarray(0, -1 - dice.below(40));
  if (change === 6) return sealed(Buffer.concat([packed(entries).subarray(0, -20), deflateSync('more')]));
  if (change === 7) return flipped(dice, packed(entries));
  if (change < 12) return sealed(flipped(dice, packed(entries).subarray(0, -20)));
  return packed(entries);
}
