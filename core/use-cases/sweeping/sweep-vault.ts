/**
 * The policy that removes vault records that no event names, and finishes interrupted work that follows an event:
 * erasures, changes of addresses, and the removal of superseded records (docs/architecture.md, invariant 5). It reads
 * every event once.
 *
 * Invariants: a record is removed only if it was last put more than 24 hours before the sweep began, by the vault's
 * clock, and no event names it up to a head that was read after that time. The sweep continues where the last one
 * stopped if the log still holds the event at that place, and else reads the log from its start. It passes an event
 * only after all the work that follows the event is done. Any number of nodes may sweep.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import {
  categoryOf,
  entityIdOf,
  LOG_START,
  type LogPosition,
  type RecordedEvent,
  type StreamName,
} from '../../kernel/envelope.ts';
import { type AccountId, plusMs, uuid } from '../../kernel/ids.ts';
import { textsIn } from '../../kernel/json.ts';
import { parseVaultRef, type VaultRef, vaultRef } from '../../kernel/vault-ref.ts';
import { EventStoreError } from '../../ports/event-store.ts';
import type { Log } from '../../ports/log.ts';
import type { ReadMark } from '../../ports/read-mark.ts';
import type { VaultRecordId, VaultReferences } from '../../ports/vault-references.ts';
import { readBack } from '../../runtime/read-back.ts';
import { lastRecordOf, markAfter, provenMark } from '../../runtime/read-mark.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { finishEmailChange } from '../accounts/change-email.ts';
import { type ErasureContext, finishErasure } from '../erasing/erase-account.ts';
import { supersededWebhookRecords } from '../webhooks/superseded-webhook-records.ts';
import { removedRecords } from './removed-records.ts';

/**
 * How long after its last `put` a vault record that no event names is removed (docs/architecture.md, invariant 5).
 * Internal: it is the pace of background work.
 */
export const UNNAMED_VAULT_RECORD_SPAN_MS = 24 * 60 * 60_000;

export interface VaultSweepContext extends ErasureContext {
  readonly references: VaultReferences;
  readonly log: Log;
  /** Called for each removed record, for the metrics. */
  readonly onSwept: (record: VaultRecordId) => void;
}

/**
 * A small page, because each event may be almost as large as an append may be. Internal: the rest is read in further
 * pages.
 */
const PAGE_EVENTS_MAX = 100;
/** Records that one statement removes. Internal: the rest is removed by further statements. */
const REMOVED_AT_ONCE_MAX = 1_000;

/** Rejects if the log or the vault cannot be reached. Resolves early when the signal is aborted. */
export async function sweepVault(context: VaultSweepContext, signal: AbortSignal): Promise<void> {
  const { references, log } = context;
  const begun = await references.now();
  // The head is read after the time: an event that names a record which is old by that time is not beyond this head.
  const head = await context.events.head();
  const complete = await readTo(context, head, signal);
  if (!complete) return;
  const putBefore = plusMs(begun, -UNNAMED_VAULT_RECORD_SPAN_MS);
  for (;;) {
    if (signal.aborted) return;
    const removed = await references.removeUnnamed(putBefore, REMOVED_AT_ONCE_MAX);
    for (const record of removed) {
      log.info({ ...record }, 'Removed a vault record that no event names');
      context.onSwept(record);
    }
    if (removed.length < REMOVED_AT_ONCE_MAX) return;
  }
}

/** Records the vault references of all events up to the head. Resolves true if it reached the head. */
async function readTo(context: VaultSweepContext, head: LogPosition, signal: AbortSignal): Promise<boolean> {
  const { events, references } = context;
  let mark = await startOf(context);
  let position = mark?.position ?? LOG_START;
  while (position < head) {
    if (signal.aborted) return false;
    const page = await events.readAll(position, PAGE_EVENTS_MAX);
    const last = page.at(-1);
    if (last === undefined) {
      // The head may be an event of the log's own server, which no reader sees. Only a log that became shorter lost
      // one.
      const now = await events.head();
      if (now >= head) return true;
      throw new EventStoreError('log-diverged', `The log's head was ${head}, and is ${now}`);
    }
    for (const event of page) await finishAfter(context, event);
    ({ position } = last);
    mark = markAfter(mark, position, lastRecordOf(page));
    await references.note(refsIn(page), mark);
  }
  return true;
}

/** Repeats the work that the event's writer does after its append. */
async function finishAfter(context: VaultSweepContext, recorded: RecordedEvent): Promise<void> {
  const { stream, revision, type } = recorded;
  if (categoryOf(stream) !== accounts.category) return;
  const account = uuid<AccountId>(entityIdOf(stream));
  if (type === 'PasswordChanged') await removeSuperseded(context, stream, revision);
  if (/^(MfaTokenDeleted|MfaReset|StorageBucket.*|TrustRuleChanged|TrustRuleDeleted)$/.test(type)) {
    for (const ref of removedRecords(recorded)) await context.vault.delete(account, ref);
  }
  if (type === 'EmailChanged') {
    await finishEmailChange(context, systemCause(context.ids, 'finish-email-changes'), account);
  }
  if (type.startsWith('Webhook')) {
    const superseded = await supersededWebhookRecords(context.events, recorded);
    for (const ref of superseded) await context.vault.delete(account, ref);
  }
  if (type !== 'AccountErased') return;
  const cause = systemCause(context.ids, 'finish-erasures');
  const { addressReleased } = await finishErasure(context, cause, account);
  if (!addressReleased) context.log.warn({ account }, 'An erased account keeps the claim of its address');
}

/** Removes the password hash that the event at this revision superseded. */
async function removeSuperseded(context: VaultSweepContext, stream: StreamName, revision: number): Promise<void> {
  for await (const recorded of readBack(context.events, stream, revision - 1)) {
    const event = readEvent<AccountEvent>(accounts.kinds, recorded);
    if (event.type !== 'PasswordChanged' && event.type !== 'AccountCreated') continue;
    await context.vault.delete(uuid<AccountId>(entityIdOf(stream)), vaultRef(event.data.password_hash_ref));
    return;
  }
}

/** Returns where the last sweep stopped, if this is the same log; null for the log's start. */
async function startOf({ events, references, log }: VaultSweepContext): Promise<ReadMark | null> {
  const mark = await references.readUpTo();
  if (mark === null) return null;
  const current = await provenMark(events, mark);
  if (current !== null) return current;
  const { stream, revision } = mark.record;
  log.warn(
    { stream, revision },
    'This is not the log that was searched for vault references before: it is searched from its start',
  );
  return null;
}

/**
 * Returns every text that has the form of a reference. So an older node keeps a record that an event of a type it does
 * not know names.
 */
function refsIn(events: readonly RecordedEvent[]): ReadonlySet<VaultRef> {
  const refs = new Set<VaultRef>();
  for (const { sourceAddressRef, data } of events) {
    for (const text of textsIn([sourceAddressRef, data])) {
      const ref = parseVaultRef(text);
      if (ref !== null) refs.add(ref);
    }
  }
  return refs;
}
