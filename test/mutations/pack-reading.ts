/** The guards of reading packs in process against chains of deltas, each with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const FILE = 'adapters/git/packs/pack-file.ts';
const TEST = 'test/adapters/git/packs/pack-reading.test.ts';

export const PACK_READING_MUTATIONS: readonly Mutation[] = [
  {
    without: 'turns of the event loop within a chain of deltas',
    file: FILE,
    text: '(done) => pack.turns.spend(done * INSTRUCTION_WORK)',
    by: '() => null',
    test: TEST,
    red: 'lets others have the event loop within a chain of deltas',
  },
  {
    without: 'turns that many reads share',
    file: 'adapters/git/packs/read-turns.ts',
    text: 'spent += work;',
    by: 'spent = work;',
    test: TEST,
    red: 'lets others have the event loop between many small reads',
  },
  {
    without: 'a bound on the deltas of a chain',
    file: FILE,
    text: 'Math.min(largest, CHAIN_DELTAS_BYTES_MAX - deltaBytes)',
    by: 'largest',
    test: TEST,
    red: 'leaves a chain of 129 deltas of 126 KB',
  },
  {
    without: 'the base of a costly delta',
    file: FILE,
    text: 'isLast && appliedBytes >= COSTLY_DELTAS_BYTES',
    by: 'isLast && appliedBytes < 0',
    test: TEST,
    red: 'keeps the base of a costly delta',
  },
];
