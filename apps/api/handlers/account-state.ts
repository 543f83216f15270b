/** The past of an account and of its repositories. */
import type { z } from 'zod';
import { jsonText } from '../http/json-text.ts';
import {
  type AccountCall,
  accountRoute,
  type Outcome,
  type RepositoryCall,
  type Route,
  repositoryRoute,
} from '../route.ts';
import { ACCOUNT_STATE, REPOSITORY_REFS } from '../schemas/account-state.ts';
import { AT_QUERY } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';

export const ACCOUNT_STATE_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'getAccountState',
    costly: true,
    tag: 'Audit',
    summary: 'Read the account as of a moment',
    description:
      'Folded from the log alone, so that an export replayed offline gives the same digest. Personal data and secrets are references. Usage counts the calendar month, in UTC, of the last entry; transfer is that of the daily sums. 404 before the account was made.',
    method: 'GET',
    path: '/v1/account/state',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: AT_QUERY },
    answers: { 200: ACCOUNT_STATE },
    problems: [404],
    handle: getAccountState,
  }),
  repositoryRoute({
    operationId: 'listRefs',
    costly: true,
    tag: 'Audit',
    summary: 'List all refs as of a moment',
    description:
      'All refs, in one answer. It shows what forced pushes and deletions took away, so it needs the grant ALL and the scope ALL_REPO. 404 before the repository was made, and while it was deleted.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/refs',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { params: REPOSITORY_PARAMS, query: AT_QUERY },
    answers: { 200: REPOSITORY_REFS },
    problems: [],
    handle: getRefs,
  }),
];

interface AtInput {
  readonly query: z.output<typeof AT_QUERY>;
}

async function getAccountState(call: AccountCall, { query }: AtInput): Promise<Outcome> {
  const { context, principal, position, request } = call;
  const asked = { seen: position, signal: call.signal() };
  const state = await context.accountStates.stateAt(principal.account, query.at ?? null, asked);
  return 'refused' in state ? state : jsonText(request, state);
}

async function getRefs(call: RepositoryCall, { query }: AtInput): Promise<Outcome> {
  const { context, repository, position, request } = call;
  const asked = { seen: position, signal: call.signal() };
  const refs = await context.repositoryRefs.refsAt(repository, query.at ?? null, asked);
  return 'refused' in refs ? refs : jsonText(request, refs);
}
