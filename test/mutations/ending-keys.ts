/** What keeps keys of checkpoints from signing for longer than they may, each guard with its test. */
import type { Mutation } from './mutation.ts';

const KEYS = 'apps/verifier/keys.ts';
const TEST = 'test/apps/verifier/ending-keys.test.ts';
const RECORD = 'core/use-cases/auditing/record-endorsements.ts';
const RECORD_TEST = 'test/core/use-cases/auditing/record-endorsements.test.ts';
const CHECKPOINTS = 'core/use-cases/auditing/checkpoints.ts';

export const ENDING_KEY_MUTATIONS: readonly Mutation[] = [
  {
    without: 'keys: that an endorsement is by the key in force',
    file: KEYS,
    text: 'if (last !== undefined && last.inForce.key.line !== previous.line) {',
    by: 'if (last !== undefined && sequence < 0) {',
    test: TEST,
    red: 'an endorsement by a key that is not in force',
  },
  {
    without: 'keys: the signature of an endorsement',
    file: KEYS,
    text: 'if (isSigned && !verify(',
    by: 'if (isSigned && sequence < 0 && !verify(',
    test: TEST,
    red: 'an endorsement that another key signed',
  },
  {
    without: 'keys: that nobody signed an endorsement',
    file: KEYS,
    text: 'const isTrusted = isGiven(key, sequence + 1) || (isSigned && isPreviousTrusted);',
    by: 'const isTrusted = isGiven(key, sequence + 1) || isPreviousTrusted;',
    test: TEST,
    red: 'an endorsement that nobody signed',
  },
  {
    without: 'keys: the key in force',
    file: KEYS,
    text: 'if (state !== undefined && size <= end && !isInForce) {',
    by: 'if (state !== undefined && size < 0 && !isInForce) {',
    test: TEST,
    red: 'a given key that is not the one in force',
  },
  {
    without: 'keys: the end of a stolen key',
    file: KEYS,
    text: 'if (revoked !== null && size > revoked.after && signers',
    by: 'if (revoked !== null && size < 0 && signers',
    test: TEST,
    red: 'what a stolen key signed beyond what was kept',
  },
  {
    without: 'keys: the end of a stolen key for endorsements',
    file: KEYS,
    text: 'if (isRevoked && signature !== null) return',
    by: 'if (isRevoked && signature !== null && sequence < 0) return',
    test: TEST,
    red: 'an endorsement by a stolen key beyond what was kept',
  },
  {
    without: 'keys: the checkpoint that pins what a stolen key counts for',
    file: 'apps/verifier/verify.ts',
    text: 'if (revoked === null || older.some(',
    by: 'if (revoked === null || older.length >= 0 || older.some(',
    test: TEST,
    red: 'a stolen key, and nothing kept',
  },
  {
    without: 'keys: the first key of a log',
    file: 'apps/verifier/verify.ts',
    text: 'if (keys !== null && isWhole && !reading.chain.isRooted()) {',
    by: 'if (keys !== null && isWhole && range === null && !reading.chain.isRooted()) {',
    test: TEST,
    red: 'two rotations, of which only a later key is given',
  },
  {
    without: 'keys: that a log endorses a key once',
    file: RECORD,
    text: 'isThere ? accept() :',
    by: "isThere && endorsement.key === '' ? accept() :",
    test: RECORD_TEST,
    red: 'is endorsed once by nodes that sign at the same time',
  },
  {
    without: 'keys: that a node signs with the key in force',
    file: CHECKPOINTS,
    text: 'const found = line === null ? all[0] :',
    by: 'const found = line === null ? all.at(-1) :',
    test: RECORD_TEST,
    red: 'waits while a process may run that does not know the event',
  },
  {
    without: 'keys: that a revoked key signs nothing',
    file: CHECKPOINTS,
    text: 'if (found !== undefined && !isRevoked(found, all)) return found;',
    by: 'if (found !== undefined) return found;',
    test: 'test/core/use-cases/auditing/checkpoints.test.ts',
    red: 'one that was revoked signs nothing',
  },
  {
    without: 'watch: that an endorsement puts a key in force',
    file: 'apps/cli/commands/audit-watch.ts',
    text: "return signing.state === 'signed' ? null : signing.why;",
    by: "return signing.state === 'wrong' ? signing.why : null;",
    test: 'test/apps/cli/audit-watch.test.ts',
    red: 'fails at a key that nothing endorses',
  },
];
