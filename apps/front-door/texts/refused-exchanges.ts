/** Why a trust rule did not let an identity token in, in words for the rule's owner. */
import type { TrustConditions } from '../../../core/account/trust-rules/conditions.ts';
import { differsByIdsAlone } from '../../../core/account/trust-rules/github-subjects.ts';
import type { ExchangeFault, RefusedExchange } from '../../../core/ports/refused-exchanges.ts';

const WORDS: { readonly [Fault in ExchangeFault]: string } = {
  'algorithm-not-allowed': 'The token is not signed with an algorithm of the list: RS, PS, ES or EdDSA',
  'audience-not-alone': 'The token is meant for other audiences too',
  'claims-malformed': 'A time or the subject of the token is missing or has a wrong form',
  expired: 'The token has expired',
  'not-yet-valid': 'The token is not valid yet',
  'issued-in-the-future': 'The token was issued in the future: compare the clocks',
  'lifetime-too-long': 'The token lives longer than 24 hours',
  'id-missing': 'The id of the token (jti) is empty, very long, or no text',
  'used-before': 'The token was exchanged before: each works once',
  'issuer-unreachable': 'The issuer could not be reached',
  'issuer-answer-invalid': 'The issuer did not answer with its configuration and its keys',
  'issuer-mismatch': 'The configuration found at the issuer names another issuer',
  'key-unknown': 'The issuer has no key for this token',
  'signature-invalid': 'The signature of the token is wrong',
  'claim-mismatch': 'A claim does not match',
  'rule-changed': 'The rule was changed during the exchange',
};

const IDS_ALONE =
  'The claim sub does not match: it differs only by numbers behind the names, where GitHub puts its ids. Ask for repo:*/* instead of the names, and for the claims repository_id and repository_owner_id of your repository';

/** `conditions` are those of the rule; undefined if it is gone. */
export function faultMessage(
  { fault, claim, found }: Pick<RefusedExchange, 'fault' | 'claim' | 'found'>,
  conditions: Pick<TrustConditions, 'subject'> | undefined,
): string {
  if (fault !== 'claim-mismatch') return WORDS[fault];
  if (claim === 'sub' && found !== null && conditions !== undefined && differsByIdsAlone(conditions.subject, found)) {
    return IDS_ALONE;
  }
  if (found !== null) return `The claim ${claim ?? ''} does not match`;
  return `The token has no usable claim ${claim ?? ''}: a text, a truth value, or a number within 2^53 that is not rounded`;
}
