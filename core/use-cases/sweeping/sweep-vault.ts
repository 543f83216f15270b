/**
 * The policy that removes vault records whose event never came, and finishes what was to follow an event and was cut
 * off: erasures, and the removal of superseded records (architecture, invariant 5). All of it reads every event once.
 *
 * Must stay true: a record goes only if it was last asked for more than 24 h before the sweep began, by the vault's
 * clock, and the whole log up to a head read after that names it nowhere. The log is read on from where the last sweep
 * stopped, as long as it still holds the event it stopped at; else from its beginning. An event is passed only once
 * all that follows it is done. Any number of nodes may sweep.
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
import { UNNAMED_VAULT_RECORD_SPAN_MS } from '../../kernel/limits.ts';
import { EventStoreError } from '../../ports/event-store.ts';
import type { Log } from '../../ports/log.ts';
import { parseVaultRef, type VaultRef, vaultRef } from '../../ports/vault.ts';
import type { VaultRecordId, VaultReferences } from '../../ports/vault-references.ts';
import { type ErasureContext, finishErasure } from '../accounts/erase-account.ts';
import { supersededWebhookRecords } from '../webhooks/superseded-webhook-records.ts';
import { systemCause } from '../../runtime/system-cause.ts';
import { markOf, standingPosition } from '../read-mark.ts';

export interface VaultSweepContext extends ErasureContext {
  readonly references: VaultReferences;
  readonly log: Log;
  /** Told of each record removed, for the metrics. */
  readonly onSwept: (record: VaultRecordId) => void;
}

/** Each may be near the bound of an append. */
const PAGE_EVENTS_MAX = 100;
const REMOVED_AT_ONCE_MAX = 1_000;

/** Rejects when log or vault cannot be reached. Ends early, without an error, once the signal is aborted. */
export async function sweepVault(context: VaultSweepContext, signal: AbortSignal): Promise<void> {
  const { references, log } = context;
  const begun = await references.now();
  // After the time was read: whatever names a record that is old by then is not beyond this head.
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

/** Notes what the log names up to the head; whether it was read to there. */
async function readTo(context: VaultSweepContext, head: LogPosition, signal: AbortSignal): Promise<boolean> {
  const { events, references } = context;
  let position = await startOf(context);
  while (position < head) {
    if (signal.aborted) return false;
    const page = await events.readAll(position, PAGE_EVENTS_MAX);
    const last = page.at(-1);
    if (last === undefined)
      throw new EventStoreError('log-diverged', `The log's head was ${head}, it ends at ${position}`);
    for (const event of page) await finishAfter(context, event);
    await references.note(refsIn(page), markOf(last));
    ({ position } = last);
  }
  return true;
}

/** Does again what the writer of the event was to do after it. */
async function finishAfter(context: VaultSweepContext, recorded: RecordedEvent): Promise<void> {
  const { stream, revision, type } = recorded;
  if (categoryOf(stream) !== accounts.category) return;
  const account = uuid<AccountId>(entityIdOf(stream));
  if (type === 'PasswordChanged') await removeSuperseded(context, stream, revision);
  if (type.startsWith('Webhook')) {
    const superseded = await supersededWebhookRecords(context.events, recorded);
    for (const ref of superseded) await context.vault.delete(account, ref);
  }
  if (type !== 'AccountErased') return;
  const cause = systemCause(context.ids, 'finish-erasures');
  const { addressReleased } = await finishErasure(context, cause, account);
  if (!addressReleased) context.log.warn({ account }, 'An erased account keeps the claim of its address');
}

/** The hash before the one that the event at this revision names. */
async function removeSuperseded(context: VaultSweepContext, stream: StreamName, revision: number): Promise<void> {
  for (let from = revision - 1; from >= 0; from -= PAGE_EVENTS_MAX) {
    const page = await context.events.readStream(stream, { direction: 'backwards', from, limit: PAGE_EVENTS_MAX });
    for (const recorded of page) {
      const event = readEvent<AccountEvent>(accounts.kinds, recorded);
      if (event.type !== 'PasswordChanged' && event.type !== 'AccountCreated') continue;
      await context.vault.delete(uuid<AccountId>(entityIdOf(stream)), vaultRef(event.data.password_hash_ref));
      return;
    }
  }
}

/** Where the last sweep stopped, if this is the log it read. */
async function startOf({ events, references, log }: VaultSweepContext): Promise<LogPosition> {
  const mark = await references.readUpTo();
  if (mark === null) return LOG_START;
  const position = await standingPosition(events, mark);
  if (position !== null) return position;
  const { stream, revision } = mark;
  log.warn(
    { stream, revision },
    'The log is another than the one that was searched for vault references: from its start',
  );
  return LOG_START;
}

/** Every text that has the form of a reference: events of types yet to come keep what they name, on older nodes too. */
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
