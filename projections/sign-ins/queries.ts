/** The query of who signed in and what was refused. */
import type { AccountId } from '../../core/kernel/ids.ts';
import { type SignInFacts, UNSUMMED_REFUSED_READS_MAX, UNSUMMED_SIGN_INS_MAX } from '../../core/ports/sign-ins.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

/** Tokens that were refused most often are named; those of the others count under their reason. */
const factsQuery: ReadQuery = {
  answer: (table) => {
    const of = (kind: string): string => `FROM ${table('sign_in_facts')} WHERE account_id = $1 AND kind = '${kind}'`;
    return `SELECT json_build_object(
      'signIns', (SELECT coalesce(json_agg(s), '[]') FROM (
        SELECT at, string_to_array(factors, ',') AS factors, source_address_ref AS "sourceAddressRef",
          user_agent_ref AS "userAgentRef"
        ${of('sign-in')} ORDER BY at DESC, event_id DESC LIMIT ${UNSUMMED_SIGN_INS_MAX}) AS s),
      'moreSignIns', (SELECT greatest(count(*) - ${UNSUMMED_SIGN_INS_MAX}, 0) ${of('sign-in')}),
      'failures', (SELECT coalesce(json_agg(f), '[]') FROM (
        SELECT factors AS factor, reason, sum(count) AS count ${of('failure')}
        GROUP BY factors, reason ORDER BY sum(count) DESC, factors, reason) AS f),
      'refusedReads', (SELECT coalesce(json_agg(r), '[]') FROM (
        SELECT token_id AS "tokenId", reason, sum(count) AS count FROM (
          SELECT CASE WHEN place <= ${UNSUMMED_REFUSED_READS_MAX} THEN token_id END AS token_id, reason, count FROM (
            SELECT token_id, reason, sum(count) AS count,
              row_number() OVER (ORDER BY token_id IS NULL, sum(count) DESC, token_id, reason) AS place
            ${of('refused-read')} GROUP BY token_id, reason) AS sums) AS named
        GROUP BY token_id, reason ORDER BY sum(count) DESC, token_id, reason) AS r))`;
  },
};

export async function readUnsummedSignIns(reader: LiveReader, account: AccountId): Promise<SignInFacts> {
  const { value } = await reader.read(factsQuery, [account], () => ({ account }));
  return value as SignInFacts;
}
