/** The sessions of browsers in memory. */
import { PENDING_SIGN_INS_MAX, SESSIONS_MAX } from '../../../core/kernel/limits.ts';
import type { SessionStore, StoredSession } from '../../../core/ports/session-store.ts';

export function createMemorySessionStore(): SessionStore {
  const sessions = new Map<string, StoredSession>();
  const of = (keep: (session: StoredSession) => boolean): readonly StoredSession[] =>
    [...sessions.values()].filter(keep);
  const drop = (dropped: readonly StoredSession[]): number => {
    for (const { idHash } of dropped) sessions.delete(idHash);
    return dropped.length;
  };
  return {
    async add(session) {
      sessions.set(session.idHash, session);
      const alike = of(({ account, status }) => account === session.account && status === session.status);
      const newestFirst = alike.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
      drop(newestFirst.slice(session.status === 'pending' ? PENDING_SIGN_INS_MAX : SESSIONS_MAX));
    },
    async keep(idHash, kept) {
      const found = sessions.get(idHash);
      if (found !== undefined) sessions.set(idHash, { ...found, kept });
    },
    async noteSeen({ idHash, seenAt, expiresAt, addressRef, agentRef }) {
      const found = sessions.get(idHash);
      if (found !== undefined) sessions.set(idHash, { ...found, seenAt, expiresAt, addressRef, agentRef });
    },
    async find(idHash, now) {
      const found = sessions.get(idHash);
      return found === undefined || found.expiresAt <= now ? null : found;
    },
    async remove(idHash) {
      sessions.delete(idHash);
    },
    async list(wanted, now) {
      const listed = of(
        ({ account, status, expiresAt }) => account === wanted && status === 'signed-in' && expiresAt > now,
      );
      return listed.toSorted((a, b) => (a.seenAt < b.seenAt ? 1 : -1));
    },
    async revoke(wanted, named) {
      return drop(of(({ account, handle }) => account === wanted && handle === named)) === 1;
    },
    async revokeOthers(wanted, kept) {
      const others = of(({ account, handle }) => account === wanted && handle !== kept);
      drop(others);
      return others.map(({ handle }) => handle);
    },
    async forgetAccount(wanted) {
      drop(of(({ account }) => account === wanted));
    },
    async removeExpired(now, limit) {
      return drop(of(({ expiresAt }) => expiresAt <= now).slice(0, limit));
    },
  };
}
