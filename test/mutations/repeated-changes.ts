/** What keeps a request that is sent again under its key from changing anything, each guard with its test. */
import type { Mutation } from './mutation.ts';

const KEYS = 'core/use-cases/pushing/push-keys.ts';
const KEYS_TEST = 'test/core/use-cases/pushing/push-keys.test.ts';

export const REPEATED_CHANGE_MUTATIONS: readonly Mutation[] = [
  {
    without: 'key: a look for its use after a lost race',
    file: 'core/use-cases/pushing/push-refs.ts',
    text: 'if ((await push.key?.isUsed(entity.position)) === true) return KEY_IN_USE;',
    by: '',
    test: 'test/apps/api/repeated-changes.test.ts',
    red: 'is refused if another node was faster with its key',
  },
  {
    without: 'key: a look for its use before a commit is decided again',
    file: 'core/use-cases/pushing/write-commit.ts',
    text: "if ((await wanted.key?.isUsed(repository.entity.position)) === true) return refuse({ code: 'key-in-use' });",
    by: '',
    test: 'test/core/use-cases/pushing/write-commit.test.ts',
    red: 'with a key is not decided on what another request with the key has written',
  },
  {
    without: 'key: a use that its repository does not know yet',
    file: KEYS,
    text: "if (push.revision >= nextRevision(repository.entity.revision)) return refuse({ code: 'key-in-use' });",
    by: '',
    test: KEYS_TEST,
    red: 'that was used since its repository was read is in use',
  },
  {
    without: 'key: its caller',
    file: KEYS,
    text: '...userOf(principal), ',
    by: '',
    test: KEYS_TEST,
    red: 'is that of a caller and of an operation',
  },
  {
    without: 'key: what was asked for',
    file: KEYS,
    text: "if (push.requestDigest !== requestDigest) return refuse({ code: 'key-used-otherwise' });",
    by: '',
    test: KEYS_TEST,
    red: 'is free again a day after each use',
  },
  {
    without: 'key: the wait for a version that holds the digest',
    file: KEYS,
    text: "context.written.versionOf('RefsUpdated') < KEYED_VERSION",
    by: 'KEYED_VERSION < 0',
    test: KEYS_TEST,
    red: 'is not taken while an older version is written',
  },
  {
    without: 'key: requests of this node that are under way',
    file: 'apps/api/changed-once.ts',
    text: 'if (keysInUse.has(free.id)) return IN_USE;',
    by: '',
    test: 'test/apps/api/repeated-changes.test.ts',
    red: 'is refused while one with its key is under way',
  },
  {
    without: 'key: a look at the parts that a dead try has left',
    file: 'core/use-cases/pushing/push-events.ts',
    text: ' && areEqual(readEvent(refUpdatesEventKinds, part).data.updates, updates)',
    by: '',
    test: 'test/core/use-cases/pushing/push-refs-limits.test.ts',
    red: 'is not held up by other parts',
  },
];
