/** The guards of signing in and of access tokens under attack, each with the test that fails without it. */
import type { Mutation } from './mutation.ts';

const HASHER = 'test/adapters/node/password-hasher.test.ts';
const TOKENS = 'test/security/failed-tokens.test.ts';

export const ENTERING_MUTATIONS: readonly Mutation[] = [
  {
    without: 'turns by who took least',
    file: 'adapters/node/fair-turns.ts',
    text: 'return one.rank < other.rank ||',
    by: 'return one.rank < other.rank - 1e9 ||',
    test: HASHER,
    red: 'from a thousand addresses that all had their turn',
  },
  {
    without: 'the place of who was turned away',
    file: 'adapters/node/fair-turns.ts',
    text: 'const at = times.get(name) ?? now;',
    by: 'const at = now;',
    test: HASHER,
    red: 'lets somebody who was refused and comes again go before them',
  },
  {
    without: 'turns for strangers beside known browsers',
    file: 'adapters/node/fair-turns.ts',
    text: 'known === undefined || knownInARow >= KNOWN_IN_A_ROW_MAX',
    by: 'known === undefined',
    test: HASHER,
    red: 'in known browsers leaves every fourth turn to strangers',
  },
  {
    without: 'a count for the whole /48 of IPv6',
    file: 'core/use-cases/callers/network-counts.ts',
    text: 'isIpv6(address) ?',
    by: 'address === null ?',
    test: 'test/core/use-cases/signing-in/sign-in.test.ts',
    red: 'has five hundred failures from all networks of a /48',
  },
  {
    without: 'the checksum of a token before it is looked up',
    file: 'core/access-token/secret.ts',
    text: 'checksumOf(crc32, secret) === checksum',
    by: 'checksum !== undefined',
    test: TOKENS,
    red: 'costs nothing for a secret with a wrong checksum',
  },
  {
    without: 'the throttle of failed tokens',
    file: 'apps/front-door/failed-tokens.ts',
    text: '(await isAnyToken(ids, position)) ? WORTH :',
    by: 'true ? WORTH :',
    test: TOKENS,
    red: 'is told after sixty in a minute to wait',
  },
  {
    without: 'the lookup that lets a valid token pass the throttle',
    file: 'apps/front-door/failed-tokens.ts',
    text: '(await isAnyToken(ids, position)) ? WORTH :',
    by: 'false ? WORTH :',
    test: TOKENS,
    red: 'does not hold up a valid token from the same address',
  },
  {
    without: 'the end of an enrolment',
    file: 'core/account/mfa/state.ts',
    text: "token.status === 'pending' && now >= enrolmentEnd(token)",
    by: "token.status === 'pending' && now < token.createdAt",
    test: 'test/core/account/mfa/decide.test.ts',
    red: 'are activated within an hour of their enrolment, or never',
  },
  {
    without: 'a refusal while the counts of guesses are away',
    file: 'core/use-cases/signing-in/sign-in.ts',
    text: 'await context.rateLimits.take(counts);',
    by: 'await context.rateLimits.take(counts).catch(() => null);',
    test: 'test/security/sign-in-outage.test.ts',
    red: 'nobody signs in, with the right password or a wrong one',
  },
  {
    without: "a refusal of an issuer's answer that broke off",
    file: 'adapters/jose/issuer-keys.ts',
    text: "if (answer.extent === 'cut')",
    by: 'if (answer.status === 0)',
    test: 'test/adapters/jose/issuer-keys.test.ts',
    red: 'are not read from an answer that broke off, or was not read to its end',
  },
  {
    without: 'an absolute home for the file of tokens',
    file: 'apps/cli/settings/config-file.ts',
    text: 'if (isAbsolute(named)) return named;',
    by: "if (named !== '-') return named;",
    test: 'test/apps/cli/config-file.test.ts',
    red: 'is where the environment says',
  },
  {
    without: 'the lock of the file of tokens',
    file: 'apps/cli/settings/config-file.ts',
    text: "closeSync(openSync(path, 'wx', 0o600));",
    by: "closeSync(openSync(path, 'w', 0o600));",
    test: 'test/apps/cli/config-file.test.ts',
    red: 'that another command left locked is named with its lock, and stays as it is',
  },
];
