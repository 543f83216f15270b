/** An in-memory version of core/ports/passkey-challenges.ts, for tests. */
import type { Timestamp } from '../../../core/kernel/ids.ts';
import { PASSKEY_CHALLENGES_MAX } from '../../../core/kernel/limits.ts';
import type { PasskeyChallenge, PasskeyChallenges } from '../../../core/ports/passkey-challenges.ts';

export function createMemoryPasskeyChallenges(): PasskeyChallenges {
  const kept = new Map<string, PasskeyChallenge & { readonly expiresAt: Timestamp }>();
  const keyOf = ({ account, purpose, challenge }: PasskeyChallenge): string => `${account} ${purpose} ${challenge}`;
  return {
    async put(challenge, { now, expiresAt }) {
      for (const [key, one] of kept) if (one.expiresAt < now) kept.delete(key);
      const own = [...kept].filter(([, { account }]) => account === challenge.account);
      const oldest = own.length >= PASSKEY_CHALLENGES_MAX ? own[0]?.[0] : undefined;
      if (oldest !== undefined) kept.delete(oldest);
      kept.set(keyOf(challenge), { ...challenge, expiresAt });
    },
    async take(challenge, now) {
      const found = kept.get(keyOf(challenge));
      kept.delete(keyOf(challenge));
      return found !== undefined && found.expiresAt > now;
    },
    async forgetAccount(wanted) {
      for (const [key, { account }] of kept) if (account === wanted) kept.delete(key);
    },
  };
}
