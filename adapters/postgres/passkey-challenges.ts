/**
 * Challenges for passkeys on PostgreSQL (core/ports/passkey-challenges.ts).
 *
 * Invariants: each call is one statement. So of two nodes that take the same challenge one deletes its row, and two
 * that put a challenge at the same time cannot exceed an account's slots: the later one replaces the earlier.
 */
import type pg from 'pg';
import { PASSKEY_CHALLENGES_MAX } from '../../core/kernel/limits.ts';
import { type PasskeyChallenges, PasskeyChallengesError } from '../../core/ports/passkey-challenges.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(
  unavailable(PasskeyChallengesError, 'passkey-challenges-unavailable', 'The challenges cannot be reached'),
);

/** Enough that the table shrinks, and so few that no sign-in waits for them. Internal: the rest is removed later. */
const EXPIRED_REMOVED_MAX = 100;

/** Takes a free slot of the account, or the one whose challenge expires first. */
const PUT = `
  WITH expired AS (
    DELETE FROM passkey_challenges WHERE (account_id, slot) IN (
      SELECT account_id, slot FROM passkey_challenges WHERE expires_at < $5::timestamptz AND account_id <> $1
      ORDER BY expires_at LIMIT ${EXPIRED_REMOVED_MAX} FOR UPDATE SKIP LOCKED))
  INSERT INTO passkey_challenges (account_id, slot, purpose, challenge, expires_at)
  SELECT $1::uuid, slots.slot, $2::text, $3::text, $4::timestamptz
  FROM generate_series(1, ${PASSKEY_CHALLENGES_MAX}) AS slots (slot)
  LEFT JOIN passkey_challenges AS used ON used.account_id = $1 AND used.slot = slots.slot
  ORDER BY used.expires_at ASC NULLS FIRST LIMIT 1
  ON CONFLICT (account_id, slot) DO UPDATE
  SET purpose = excluded.purpose, challenge = excluded.challenge, expires_at = excluded.expires_at`;

const TAKE = `
  DELETE FROM passkey_challenges
  WHERE account_id = $1 AND purpose = $2 AND challenge = $3 AND expires_at > $4::timestamptz`;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresPasskeyChallenges(pool: pg.Pool): PasskeyChallenges {
  return {
    async put({ account, purpose, challenge }, { now, expiresAt }) {
      await query(pool, PUT, [account, purpose, challenge, expiresAt, now]);
    },
    async take({ account, purpose, challenge }, now) {
      return (await query(pool, TAKE, [account, purpose, challenge, now])).rowCount === 1;
    },
    async forgetAccount(account) {
      await query(pool, 'DELETE FROM passkey_challenges WHERE account_id = $1', [account]);
    },
  };
}
