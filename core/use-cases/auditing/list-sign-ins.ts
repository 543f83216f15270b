/**
 * Lists who signed in to an account, what failed, and which reads were refused: of the days that the daily sums hold,
 * newest first, and of what they do not hold yet.
 *
 * Invariants: the past comes from the account's log, so it is the same after the operational events are pruned. Its
 * page is bounded by the days asked for, each of which names a bounded number of sign-ins and tokens.
 */
import { readEvent } from '../../kernel/decider.ts';
import { type LogPosition, streamName } from '../../kernel/envelope.ts';
import { type AccountId, type EventId, timestamp } from '../../kernel/ids.ts';
import { parseVaultRef, type VaultDisclosure, type VaultRef } from '../../kernel/vault-ref.ts';
import { EVERY_ENTRY } from '../../ports/account-log.ts';
import type { SignInFacts, SignInsReader } from '../../ports/sign-ins.ts';
import type { UsageLedgerReader } from '../../ports/usage-ledger.ts';
import { detailsOf, type UsageDetails, usageEventKinds } from '../../usage/events.ts';
import { type EntriesContext, entryLines } from './read-entries.ts';

export interface SignInsContext extends Omit<EntriesContext, 'readModels'> {
  readonly readModels: EntriesContext['readModels'] & SignInsReader & Pick<UsageLedgerReader, 'usageLedgerCaughtUp'>;
}

export interface WantedSignIns {
  readonly account: AccountId;
  /** The answer includes the log up to this position. */
  readonly seen: LogPosition;
  /** The sequence that the page of days ends before; null for the newest. */
  readonly before: number | null;
  readonly limit: number;
}

type Openings = ReadonlyMap<VaultRef, VaultDisclosure>;

/** What the daily sums say of a day, or of several days if the service was down at the end of one. */
export interface SignInDay {
  /** `YYYY-MM-DD`: the last day of the sums. */
  readonly day: string;
  /** The `UsageRecorded`. */
  readonly eventId: EventId;
  readonly sequence: number;
  /** Null if the version that wrote the sums recorded none. */
  readonly facts: SignInFacts | null;
  readonly openings: Openings;
}

export interface ListedSignIns {
  /** What no sums hold yet. */
  readonly today: { readonly facts: SignInFacts; readonly openings: Openings };
  readonly days: readonly SignInDay[];
  readonly hasMore: boolean;
}

export async function listSignIns(
  context: SignInsContext,
  { account, seen, before, limit }: WantedSignIns,
): Promise<ListedSignIns> {
  const { readModels, vault } = context;
  await Promise.all([readModels.accountLogCaughtUp(seen), readModels.usageLedgerCaughtUp(seen)]);
  // Read first: what is summed in between is named twice, and never left out.
  const facts = await readModels.unsummedSignIns(account);
  const { size } = await readModels.logPrefix(account, null);
  const places = await readModels.entryPlaces(
    account,
    { ...EVERY_ENTRY, type: 'UsageRecorded', stream: streamName('usage', account) },
    { from: 0, to: Math.min(size, before ?? size), limit: limit + 1, newestFirst: true },
  );
  const days: SignInDay[] = [];
  for await (const { place, event } of entryLines(context, account, places.slice(0, limit))) {
    const data = readEvent(usageEventKinds, event).data;
    const details = detailsOf(data);
    const of = details === null ? null : factsOf(details);
    days.push({
      day: data.day,
      eventId: event.id,
      sequence: place.sequence,
      facts: of,
      openings: of === null ? new Map() : await openingsOf(vault, account, of),
    });
  }
  const openings = await openingsOf(vault, account, facts);
  return { today: { facts, openings }, days, hasMore: places.length > limit };
}

/** The event has the oldest sign-in first. */
function factsOf({ sign_ins, more_sign_ins, failures, refused_reads }: UsageDetails): SignInFacts {
  return {
    signIns: sign_ins.toReversed().map(({ at, factors, source_address_ref, user_agent_ref }) => ({
      at: timestamp(at),
      factors,
      sourceAddressRef: source_address_ref,
      userAgentRef: user_agent_ref,
    })),
    moreSignIns: more_sign_ins,
    failures,
    refusedReads: refused_reads.map(({ token_id: tokenId, reason, count }) => ({ tokenId, reason, count })),
  };
}

async function openingsOf(
  vault: SignInsContext['vault'],
  account: AccountId,
  { signIns }: SignInFacts,
): Promise<Openings> {
  const of = (field: 'source-address' | 'user-agent', texts: readonly (string | null)[]) => {
    const refs = new Set(texts.flatMap((text) => (text === null ? [] : (parseVaultRef(text) ?? []))));
    return [...refs].map((ref) => ({ field, ref }));
  };
  const records = [
    ...of(
      'source-address',
      signIns.map(({ sourceAddressRef }) => sourceAddressRef),
    ),
    ...of(
      'user-agent',
      signIns.map(({ userAgentRef }) => userAgentRef),
    ),
  ];
  return records.length === 0 ? new Map() : vault.discloseAll(account, records);
}
