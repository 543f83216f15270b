/** Guards of what a fetch may have by its id. */
import type { Mutation } from './mutation.ts';

const STATE = 'test/core/repository/unreached.test.ts';

export const FETCHED_ID_MUTATIONS: readonly Mutation[] = [
  {
    without: 'a look at who stored the layers of a push',
    file: 'core/repository/evolve.ts',
    text: 'onceReached: state.onceReached && (data.layer === null || data.once_reached),',
    by: 'onceReached: state.onceReached,',
    test: STATE,
    red: 'of no repository with a layer from a version that stored what no ref reached, or merged from one',
  },
  {
    without: 'what a drop says of the layers',
    file: 'core/repository/evolve.ts',
    text: 'const onceReached = drops ? event.data.once_reached : compacted.onceReached;',
    by: 'const { onceReached } = compacted;',
    test: STATE,
    red: 'again from the drop on that says so, and a merge says nothing',
  },
  {
    without: 'the rule of before for what no purge can remove',
    file: 'core/repository/unreached.ts',
    text: 'return state.onceReached && isDroppable(state);',
    by: 'return state.onceReached;',
    test: STATE,
    red: 'of no repository that is too large for a purge',
  },
  {
    without: 'a search for what a push brought back during a drop',
    file: 'core/use-cases/compacting/drop-unreached.ts',
    text: 'this.#onceReached &&= changes.onceReached && !areDropped;',
    by: 'this.#onceReached &&= changes.onceReached;',
    test: 'test/core/use-cases/compacting/drop-racing-bases.test.ts',
    red: 'and sends again what is dropped, is not served it by its id',
  },
  {
    without: 'a second look at a pack after a lost race',
    file: 'core/use-cases/pushing/push-refs.ts',
    text: '(refused === null || refusesMore(decision, refused))',
    by: 'refused === null',
    test: 'test/core/use-cases/pushing/lost-races.test.ts',
    red: 'A push whose pack is checked in process stores nothing of a ref that a lost race refused',
  },
  {
    without: 'the refs of a moment that is the present one',
    file: 'core/use-cases/as-of/repository-as-of.ts',
    text: 'state: { ...now, onceReached: false }',
    by: 'state: now',
    test: 'test/scenarios/forced-away.test.ts',
    red: 'is not shown over REST, and no clone as of a moment has it that did not then',
  },
];
