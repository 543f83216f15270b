/** The past of an account and of its repositories. */
import type { z } from 'zod';
import { jsonText } from '../http/json-text.ts';
import type { AccountCall, Outcome, RepositoryCall } from '../route.ts';
import type { AT_QUERY } from '../schemas/common.ts';

interface AtInput {
  readonly query: z.output<typeof AT_QUERY>;
}

export async function getAccountState(call: AccountCall, { query }: AtInput): Promise<Outcome> {
  const { context, principal, position, request } = call;
  const asked = { seen: position, signal: call.signal() };
  const state = await context.accountStates.stateAt(principal.account, query.at ?? null, asked);
  return 'refused' in state ? state : jsonText(request, state);
}

export async function getRefs(call: RepositoryCall, { query }: AtInput): Promise<Outcome> {
  const { context, repository, position, request } = call;
  const asked = { seen: position, signal: call.signal() };
  const refs = await context.repositoryRefs.refsAt(repository, query.at ?? null, asked);
  return 'refused' in refs ? refs : jsonText(request, refs);
}
