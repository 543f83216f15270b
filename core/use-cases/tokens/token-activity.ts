/**
 * Shows what became of an access token, and what was done with it: its changes, and its uses by minute and repository.
 *
 * Invariants: a revoked token is shown as long as its events are kept, and another account's token is not found. The
 * cost of a page of uses does not grow with the uses before it; that of a page of changes grows with the token's
 * stream, which every use of the token reads as well.
 */
import { type AccessTokenEvent, accessTokenEventKinds } from '../../access-token/events.ts';
import { accessTokens } from '../../access-token/evolve.ts';
import type { RepositorySelection } from '../../access-token/repository-selection.ts';
import type { AccessToken } from '../../access-token/state.ts';
import { readEvent, refuse } from '../../kernel/decider.ts';
import { type LogPosition, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import type { Grant } from '../../kernel/grants.ts';
import type { AccessTokenId, AccountId, EventId, Timestamp } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { TokenUse, TokenUsePlace, UsageLedgerReader } from '../../ports/usage-ledger.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Context } from '../../runtime/execute.ts';
import { type Opened, withOpenedAddresses } from './opened-addresses.ts';

export interface TokenActivityContext extends Pick<Context, 'entities' | 'events'> {
  readonly readModels: UsageLedgerReader;
  readonly vault: Pick<Vault, 'discloseAll'>;
}

/** Where a page begins: how many changes and which uses are before it. */
export interface TokenActivityPlace {
  readonly changes: number;
  /** Null for the first use. */
  readonly used: TokenUsePlace | null;
}

/** What the token was allowed from an event on; of a revocation what it had been allowed. */
export interface TokenChange extends RepositorySelection {
  readonly at: Timestamp;
  readonly eventId: EventId;
  readonly grants: readonly Grant[];
  readonly expiresAt: Timestamp | null;
  readonly revoked: boolean;
}

export type OpenedTokenUse = Opened<TokenUse>;

export interface TokenActivity {
  readonly changes: readonly TokenChange[];
  readonly used: readonly OpenedTokenUse[];
  readonly next: TokenActivityPlace;
  readonly hasMore: boolean;
}

export interface WantedTokenActivity {
  readonly account: AccountId;
  readonly token: AccessTokenId;
  /** The page includes the log up to this position. */
  readonly seen: LogPosition;
  readonly from: TokenActivityPlace;
  /** How many changes, and how many uses. */
  readonly limit: number;
}

/** Both lists begin with the oldest. Refused with `token-not-found`. */
export async function readTokenActivity(
  context: TokenActivityContext,
  { account, token, seen, from, limit }: WantedTokenActivity,
): Promise<TokenActivity | { readonly refused: Refusal }> {
  const { state } = await context.entities.get(accessTokens, token);
  if (state.status === 'absent' || state.account !== account) return refuse({ code: 'token-not-found' });
  await context.readModels.usageLedgerCaughtUp(seen);
  const changes = await changesOf(context, token, { from: from.changes, limit: limit + 1 });
  const { uses, hasMore } = await context.readModels.tokenUses(account, token, { after: from.used, limit });
  const last = uses.at(-1);
  const shown = changes.slice(0, limit);
  return {
    changes: shown,
    used: await withOpenedAddresses(context.vault, account, uses),
    next: {
      changes: from.changes + shown.length,
      used: last === undefined ? from.used : { minute: last.minute, repositoryId: last.repositoryId },
    },
    hasMore: hasMore || changes.length > limit,
  };
}

/** Events that are read together. Internal: the rest is read in further pages. */
const PAGE_EVENTS_MAX = 500;

/** Every event of a token's stream is a change. Each depends on those before it, so they are all read. */
async function changesOf(
  { events }: Pick<Context, 'events'>,
  token: AccessTokenId,
  { from, limit }: { readonly from: number; readonly limit: number },
): Promise<readonly TokenChange[]> {
  const stream = streamName(accessTokens.category, token);
  const changes: TokenChange[] = [];
  let state: AccessToken = accessTokens.initial;
  for (let revision = 0; ; ) {
    const page = await events.readStream(stream, { direction: 'forwards', from: revision, limit: PAGE_EVENTS_MAX });
    for (const recorded of page) {
      const event = readEvent<AccessTokenEvent>(accessTokenEventKinds, recorded);
      const before = state;
      state = accessTokens.evolve(before, event, recorded.occurredAt);
      if (recorded.revision >= from)
        changes.push(changeOf(recorded, state.status === 'revoked' ? before : state, state));
      if (changes.length === limit) return changes;
    }
    if (page.length < PAGE_EVENTS_MAX) return changes;
    revision += page.length;
  }
}

function changeOf({ occurredAt, id, stream }: RecordedEvent, allowed: AccessToken, state: AccessToken): TokenChange {
  if (allowed.status !== 'active' && allowed.status !== 'exchanged')
    throw new TypeError(`${stream} begins with no token`);
  const { scope, repositoryIds, grants, expiresAt } = allowed;
  return { at: occurredAt, eventId: id, scope, repositoryIds, grants, expiresAt, revoked: state.status === 'revoked' };
}
