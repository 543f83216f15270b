/** The account's usage, the quotas of its plan, and what the figures are the sum of. */
import type { z } from 'zod';
import {
  accountBucketStorage,
  accountChanges,
  accountDeletedStorage,
  accountUsage,
  accountWaitingStorage,
} from '../../../core/use-cases/metering/account-usage.ts';
import { listUsageLedger } from '../../../core/use-cases/metering/usage-ledger.ts';
import { ledgerPlaceText } from '../../front-door/list-places.ts';
import { ok } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type Route } from '../route.ts';
import { LEDGER_QUERY, USAGE, USAGE_LEDGER } from '../schemas/usage.ts';

const LEDGER_NOTES =
  'A month of changes, each with its event, repository and token. `totals` are the figures of `GET /v1/account/usage`, but for transfer of the last minute, which is not in the log yet; a crash may lose that minute.';

export const USAGE_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'getUsage',
    tag: 'Account',
    summary: 'Read the usage and the quotas of the account',
    description: 'Transfer and ingress count the current calendar month in UTC.',
    method: 'GET',
    path: '/v1/account/usage',
    schemas: {},
    answers: { 200: USAGE },
    problems: [],
    handle: getUsage,
  }),
  accountRoute({
    operationId: 'listUsageLedger',
    tag: 'Audit',
    summary: 'List what the figures of usage are the sum of',
    description: LEDGER_NOTES,
    method: 'GET',
    path: '/v1/account/usage/ledger',
    grant: 'ALL',
    scope: 'ALL_REPO',
    schemas: { query: LEDGER_QUERY },
    answers: { 200: USAGE_LEDGER },
    problems: [],
    handle: getUsageLedger,
  }),
];

async function getUsage({ context, principal, position }: AccountCall): Promise<Outcome> {
  const usage = await accountUsage(context, principal.account, position);
  if ('refused' in usage) return usage;
  const changes = await accountChanges(context, principal.account, position);
  if ('refused' in changes) return changes;
  const waiting = await accountWaitingStorage(context, principal.account, position);
  if ('refused' in waiting) return waiting;
  const buckets = await accountBucketStorage(context, principal.account, position);
  const json: z.output<typeof USAGE> = {
    repos: usage.repositories,
    storage_bytes: usage.storageBytes,
    transfer_bytes: usage.transferBytes,
    ingress_bytes: usage.ingressBytes,
    changes,
    deleted_storage_bytes: {
      used: await accountDeletedStorage(context, principal.account, position),
      quota: null,
    },
    waiting_storage_bytes: waiting,
    byo_storage_bytes: {
      used: buckets.reduce((sum, { storageBytes }) => sum + storageBytes, 0),
      quota: null,
      buckets: buckets.map(({ storageBucketId, storageBytes }) => ({
        storage_bucket_id: storageBucketId,
        used: storageBytes,
      })),
    },
  };
  return ok(json);
}

async function getUsageLedger(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof LEDGER_QUERY> },
): Promise<Outcome> {
  const { month = null, after = null, limit } = query;
  const wanted = { account: principal.account, seen: position, month, after, limit };
  const ledger = await listUsageLedger(context, wanted);
  if ('refused' in ledger) return ledger;
  const last = ledger.entries.at(-1) ?? after;
  const json: z.output<typeof USAGE_LEDGER> = {
    month: ledger.month,
    opening: ledger.opening,
    entries: ledger.entries.map(({ eventId, member, delta, at, repositoryId, tokenId, operational }) => ({
      event_id: eventId,
      member,
      delta,
      at,
      repository_id: repositoryId,
      token_id: tokenId,
      ...(operational ? { operational: true as const } : {}),
    })),
    pagination: { next_after: last === null ? null : ledgerPlaceText(last), has_more: ledger.hasMore },
    totals: ledger.totals,
  };
  return ok(json);
}
