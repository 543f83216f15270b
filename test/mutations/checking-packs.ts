/** What keeps a costly push from holding up others, each with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const TEST = 'test/adapters/git/receiving/admission.test.ts';
const LEFT_OVER = {
  test: 'test/adapters/git/receiving/left-over.test.ts',
  red: 'is found exactly, whoever checks the pack',
};

export const CHECKING_PACKS_MUTATIONS: readonly Mutation[] = [
  {
    without: 'a bound on the processor time of a pack',
    file: 'adapters/git/receiving/index-pack.ts',
    text: 'cpuMsMax: () => cpuMsMax(bytesSoFar())',
    by: 'cpuMsMax: () => cpuMsMax(2 ** 50)',
    test: TEST,
    red: 'is given back when a pack of 50 KB takes more processor time',
  },
  {
    without: 'a part of the memory for ordinary packs',
    file: 'adapters/git/receiving/push-memory.ts',
    text: 'orElse(ordinary.ofWeight(memoryBytesMax), heavy.ofWeight(memoryBytesMax))',
    by: 'heavy.ofWeight(memoryBytesMax)',
    test: TEST,
    red: 'is left to others while a pack of 64 KB has all that one may have',
  },
  {
    without: 'one comparison for refs that move alike',
    file: 'adapters/git/packs/ancestry.ts',
    text: 'new Map(moves.map((move) => [keyOf(move), move]))',
    by: 'new Map(moves.map((move, index) => [String(index), move]))',
    test: 'test/adapters/git/packs/ancestry.test.ts',
    red: 'are compared once where 100,000 refs move alike',
  },
  {
    without: 'a bound on the moves of a push that git compares',
    file: 'adapters/git/packs/ancestry.ts',
    text: 'far.length > PUSH_MOVES_FAR_MAX',
    by: 'far.length > PUSH_MOVES_WALKED_MAX',
    test: 'test/adapters/git/packs/ancestry.test.ts',
    red: 'different ones are far, before git compares any',
  },
  {
    without: 'the check of a large pack before the end of its layer',
    file: 'adapters/git/receiving/unfinished-quarantine.ts',
    text: 'await passed();\n      if (last',
    by: 'if (last',
    test: 'test/adapters/git/receiving/receiving.test.ts',
    red: 'nothing is stored of what is refused',
  },
  {
    without: 'a look at what nothing refers to in a small pack',
    file: 'adapters/git/receiving/left-over.ts',
    text: 'return sent.unreferenced.some((id) => !tips.has(id));',
    by: 'return false && tips.size > 0;',
    ...LEFT_OVER,
  },
  {
    without: 'a search for what is new in a pack that holds more than its tips reach',
    file: 'adapters/git/receiving/left-over.ts',
    text: 'return hasMoreNew(compared, reached, pushed.signal);',
    by: 'return false;',
    ...LEFT_OVER,
  },
  {
    without: 'the search for committed objects in a pack',
    file: 'adapters/git/receiving/left-over.ts',
    text: 'if (await isInAny(indexes, id)) return false;',
    by: '',
    test: LEFT_OVER.test,
    red: 'is not what the client sent again, nor a base that git appended',
  },
];
