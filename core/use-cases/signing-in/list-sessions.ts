/** Reads the sessions of an account for its person, with the address and the browser of each. */
import type { AccountId, Timestamp } from '../../kernel/ids.ts';
import type { VaultField, VaultRef } from '../../kernel/vault-ref.ts';
import type { SessionStore } from '../../ports/session-store.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Context } from '../../runtime/execute.ts';

export interface ListSessionsContext extends Pick<Context, 'clock'> {
  readonly sessions: Pick<SessionStore, 'list'>;
  readonly vault: Pick<Vault, 'get'>;
}

export interface ListedSession {
  /** Names the session; it lets nobody in. */
  readonly handle: string;
  readonly createdAt: Timestamp;
  readonly seenAt: Timestamp;
  /** Where and with what the session was last seen; null if that is not known any more. */
  readonly address: string | null;
  readonly agent: string | null;
}

/** Lists the sessions that have the epoch, last seen first. */
export async function listSessions(
  context: ListSessionsContext,
  account: AccountId,
  epoch: number,
): Promise<readonly ListedSession[]> {
  const stored = await context.sessions.list(account, context.clock.now());
  // Most sessions share their address and browser with others.
  const known = new Map<VaultRef, Promise<string | null>>();
  const read = (field: VaultField, ref: VaultRef | null): Promise<string | null> => {
    if (ref === null) return Promise.resolve(null);
    const value = known.get(ref) ?? context.vault.get(account, field, ref);
    known.set(ref, value);
    return value;
  };
  const valid = stored.filter((session) => session.epoch === epoch);
  return Promise.all(
    valid.map(async ({ handle, createdAt, seenAt, addressRef, agentRef }) => {
      const [address, agent] = await Promise.all([read('source-address', addressRef), read('user-agent', agentRef)]);
      return { handle, createdAt, seenAt, address, agent };
    }),
  );
}
