/**
 * Credentials of roles (core/ports/buckets.ts), kept in memory and replaced before they end.
 *
 * Invariants: a role is asked for once however many callers wait, and one that was refused is not asked for again
 * for a while. Credentials belong to one account and role, and stand in no error.
 */
import { LRUCache } from 'lru-cache';
import { msBetween, timestamp } from '../../core/kernel/ids.ts';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import { type RoleAccess, type RoleCredentials, RoleRefused, type Roles } from '../../core/ports/buckets.ts';
import type { Clock } from '../../core/ports/clock.ts';
import { createTokenService, type TokenService, type TokenServiceOptions } from './assume-role.ts';

/**
 * Credentials that end sooner than this are replaced before that; those that end sooner than the second are not used.
 * Internal: credentials are replaced before they end.
 */
export const ROLE_RENEWAL_MS = 5 * 60_000;
export const ROLE_USE_MIN_MS = 60_000;
/** Roles whose credentials a node keeps, about 2 KiB each. Internal: what is not kept is asked for again. */
export const ROLES_KEPT_MAX = 4_000;
/**
 * A role that was refused is not asked for again for this long. Internal: it is how often a token service is asked.
 */
export const ROLE_REFUSAL_KEPT_MS = 5_000;

export type StsRoles = Roles & { close(): void };

export function createStsRoles({ clock, ...service }: TokenServiceOptions & { readonly clock: Clock }): StsRoles {
  return createKeptRoles(createTokenService(service), clock);
}

/** What a node knows of one role. */
interface Kept {
  credentials: RoleCredentials | null;
  fetching: Promise<RoleCredentials> | null;
  refused: { readonly error: RoleRefused; readonly untilMs: number } | null;
}

export function createKeptRoles(service: TokenService, clock: Clock): StsRoles {
  const roles = countedCache('bucket_roles', 'entries', new LRUCache<string, Kept>({ max: ROLES_KEPT_MAX }));

  function keptOf(access: RoleAccess): Kept {
    const key = `${access.account} ${access.roleArn}`;
    const known = roles.get(key);
    if (known !== undefined) return known;
    const kept = { credentials: null, fetching: null, refused: null };
    roles.set(key, kept);
    return kept;
  }

  const leftMs = (credentials: RoleCredentials): number => msBetween(clock.now(), timestamp(credentials.expiresAt));

  async function fetch(kept: Kept, access: RoleAccess): Promise<RoleCredentials> {
    try {
      const credentials = await service.assumeRole(access);
      if (leftMs(credentials) <= ROLE_USE_MIN_MS) {
        throw new RoleRefused(
          'clock-skewed',
          'The credentials of the role had ended when they came: compare the clocks',
        );
      }
      kept.credentials = credentials;
      return credentials;
    } catch (error) {
      if (error instanceof RoleRefused) {
        kept.refused = { error, untilMs: clock.monotonicMs() + ROLE_REFUSAL_KEPT_MS };
      }
      throw error;
    } finally {
      kept.fetching = null;
    }
  }

  /** Begins to fetch credentials, or joins who does. Rejects immediately while a refusal is kept. */
  async function fetched(kept: Kept, access: RoleAccess): Promise<RoleCredentials> {
    const { refused } = kept;
    if (refused !== null && clock.monotonicMs() < refused.untilMs) {
      throw new RoleRefused(refused.error.code, refused.error.message);
    }
    kept.fetching ??= fetch(kept, access);
    return kept.fetching;
  }

  return {
    async credentials(access) {
      const kept = keptOf(access);
      const { credentials } = kept;
      const restMs = credentials === null ? 0 : leftMs(credentials);
      if (credentials === null || restMs <= ROLE_USE_MIN_MS) return fetched(kept, access);
      // A failure shows when these have ended.
      if (restMs <= ROLE_RENEWAL_MS) void fetched(kept, access).catch(() => undefined);
      return credentials;
    },
    drop(access, refused) {
      const kept = keptOf(access);
      if (refused === undefined) kept.refused = null;
      if (refused === undefined || kept.credentials?.sessionToken === refused.sessionToken) kept.credentials = null;
    },
    close: () => service.close(),
  };
}
