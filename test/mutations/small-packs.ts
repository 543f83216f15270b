/** What makes an object plain (plain-objects.ts, small-pack.ts): git refuses some pack that passes without it. */
import type { Mutation } from './mutation.ts';

const PLAIN = 'adapters/git/receiving/plain-objects.ts';
const HEADER = 'adapters/git/packs/entry-header.ts';
const BOUNDS = 'adapters/git/receiving/pack-bounds.ts';
const NEARBY = 'adapters/git/receiving/nearby-objects.ts';
const DELTA = 'adapters/git/packs/pack-delta.ts';
const SMALL = 'adapters/git/receiving/small-pack.ts';
const REFUSED = {
  test: 'test/adapters/git/receiving/small-pack.test.ts',
  red: 'are never accepted in process where git refuses them',
};
const READ = { test: REFUSED.test, red: 'is accepted in process only where git accepts and reads it' };
const FEW_READS = { test: REFUSED.test, red: 'takes few reads' };
const WORK = { test: REFUSED.test, red: 'is left to git beyond the bounds' };

export const SMALL_PACK_MUTATIONS: readonly Mutation[] = [
  {
    without: 'the order of a plain tree',
    file: PLAIN,
    text: 'if (sorted <= before) return null;',
    by: '',
    ...REFUSED,
  },
  { without: 'the modes of a plain tree', file: PLAIN, text: 'type === undefined || !PLAIN', by: '!PLAIN', ...REFUSED },
  { without: 'the names of a plain tree', file: PLAIN, text: '!PLAIN_NAME.test(name) ||', by: '', ...REFUSED },
  { without: 'the names of git in a plain tree', file: PLAIN, text: "special === 'unusual' ||", by: '', ...REFUSED },
  { without: 'null ids in a plain tree', file: PLAIN, text: 'if (/^0+$/.test(id)) return null;', by: '', ...REFUSED },
  {
    without: 'the lines of plain attributes',
    file: PLAIN,
    text: '- start >= ATTRIBUTES_LINE_BYTES',
    by: '- start > ATTRIBUTES_LINE_BYTES',
    ...REFUSED,
  },
  { without: 'NUL in a plain commit', file: PLAIN, text: 'if (bytes.includes(0)) return null;', by: '', ...REFUSED },
  {
    without: 'the end of the headers of a plain commit',
    file: PLAIN,
    text: "if (text[head.length] !== '\\n' && !text.includes('\\n\\n', head.length)) return null;",
    by: '',
    ...REFUSED,
  },
  {
    without: 'the type of what a plain object names',
    file: SMALL,
    text: 'if (links.some(({ id, type }) => types.get(id) !== type)) return null;',
    by: '',
    ...REFUSED,
  },
  {
    without: 'the checksum of a small pack',
    file: SMALL,
    text: 'if (!checksum.equals(pack.subarray(end))) return null;',
    by: '',
    test: REFUSED.test,
    red: 'leaves nothing where git has to decide',
  },
  {
    without: 'the end of a small pack',
    file: SMALL,
    text: '=== end ? entries : null',
    by: '<= end ? entries : null',
    ...REFUSED,
  },
  {
    without: 'deltas that make nothing',
    file: DELTA,
    text: 'if (result.size === 0)',
    by: 'if (result.size < 0)',
    ...READ,
  },
  { without: 'the longest size of an entry', file: HEADER, text: 'at > SIZE_BYTES_MAX ||', by: '', ...READ },
  {
    without: 'what git calls missing in a pack',
    file: BOUNDS,
    text: 'if (bytes[end - 1] === END_OF_MISSING) return true;',
    by: '',
    test: REFUSED.test,
    red: 'are refused by git where they could not be read, with 200 more objects',
  },
  { without: 'the depth of committed objects', file: NEARBY, text: 'MAX = 50', by: 'MAX = 5_000', ...FEW_READS },
  { without: 'the sum of deltas of bases', file: NEARBY, text: 'MAX = 200', by: 'MAX = 5_000', ...FEW_READS },
  { without: 'the number of bases', file: SMALL, text: 'BASES_MAX = 64', by: 'BASES_MAX = 512', ...FEW_READS },
  {
    without: 'the ids of bases',
    file: SMALL,
    text: '|| hash(object.type, object.bytes) !== base',
    by: '',
    test: REFUSED.test,
    red: 'is not completed with it',
  },
  { without: 'the sum of instructions', file: SMALL, text: '|| instructions > INSTRUCTIONS_MAX', by: '', ...WORK },
  { without: 'the sum of trees', file: SMALL, text: '|| treeBytes > TREES_BYTES_MAX', by: '', ...WORK },
  { without: 'the bytes of one tree', file: SMALL, text: 'bytes.length > TREE_BYTES_MAX ||', by: '', ...WORK },
  {
    without: 'the targets of links',
    file: SMALL,
    text: '|| [...all].some((isPlain) => !isPlain(object.bytes))',
    by: '',
    test: REFUSED.test,
    red: 'is accepted in process only if no version of git refuses it',
  },
  { without: 'double names in a plain tree', file: PLAIN, text: '|| names.has(name)', by: '', ...READ },
  { without: 'objects that come twice', file: SMALL, text: 'isSound &&= !byId.has(object.id);', by: '', ...READ },
  {
    without: 'objects that are known',
    file: SMALL,
    text: 'if (await committed.has(id)) return null;',
    by: '',
    ...READ,
  },
  {
    without: 'the contents of plain files',
    file: SMALL,
    text: 'return (await havePlainContents(contents, byId, { committed, turns })) ? referenced : null;',
    by: 'return referenced;',
    ...REFUSED,
  },
];
