/** Who signed in to the account, what failed, and which reads were refused. */
import type { z } from 'zod';
import type { VaultDisclosure, VaultRef } from '../../../core/kernel/vault-ref.ts';
import type { SignInFacts } from '../../../core/ports/sign-ins.ts';
import { listSignIns } from '../../../core/use-cases/auditing/list-sign-ins.ts';
import { ok } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { SIGN_INS, SIGN_INS_QUERY } from '../schemas/sign-ins.ts';

export const SIGN_IN_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'listSignIns',
    tag: 'Access',
    summary: 'List who signed in, what failed, and which reads were refused',
    description:
      'Failed passwords and second factors by their reason, and refused reads by token and reason. Those of today are there within a minute and a half. A read is a GET of the API or a fetch; tokens that were revoked or have expired count too.',
    method: 'GET',
    path: '/v1/account/sign-ins',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: SIGN_INS_QUERY },
    answers: { 200: SIGN_INS },
    problems: [],
    handle: getSignIns,
  }),
];

async function getSignIns(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof SIGN_INS_QUERY> },
): Promise<Outcome> {
  const { before = null, limit } = query;
  const listed = await listSignIns(context, { account: principal.account, seen: position, before, limit });
  const { today, days, hasMore } = listed;
  const json: z.output<typeof SIGN_INS> = {
    today: detailsJson(today.facts, today.openings),
    days: days.map(({ day, eventId, facts, openings }) => ({
      day,
      event_id: eventId,
      details: facts === null ? null : detailsJson(facts, openings),
    })),
    pagination: { next_before: days.at(-1)?.sequence ?? before, has_more: hasMore },
  };
  return ok(json);
}

function detailsJson(
  { signIns, moreSignIns, failures, refusedReads }: SignInFacts,
  openings: ReadonlyMap<VaultRef, VaultDisclosure>,
): z.output<typeof SIGN_INS>['today'] {
  return {
    sign_ins: signIns.map(({ at, factors, sourceAddressRef, userAgentRef }) => ({
      at,
      factors: [...factors],
      source_address_ref: sourceAddressRef,
      user_agent_ref: userAgentRef,
    })),
    more_sign_ins: moreSignIns,
    failures: failures.map(({ factor, reason, count }) => ({ factor, reason, count })),
    refused_reads: refusedReads.map(({ tokenId, reason, count }) => ({ token_id: tokenId, reason, count })),
    openings: Object.fromEntries([...openings].map(([ref, { nonce, value }]) => [ref, { nonce, value }])),
  };
}
