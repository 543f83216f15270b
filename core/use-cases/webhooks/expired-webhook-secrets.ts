/**
 * The policy that removes a webhook's previous secret from the vault when it no longer signs.
 *
 * Must stay true: no secret is removed while a node may still sign with it. The policy passes rotations in the order of
 * the log, each only after its secret was removed, so the mark is all that it must remember. Any number of nodes may
 * sweep.
 */
import { accounts } from '../../account/evolve.ts';
import type { AccountEvent } from '../../account/events.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, LOG_START, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, timestamp, uuid } from '../../kernel/ids.ts';
import { WEBHOOK_SECRET_REMOVAL_MARGIN_MS } from '../../kernel/limits.ts';
import { wholeAppends } from '../../kernel/whole-appends.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { ReadMark } from '../../ports/read-mark.ts';
import type { Vault } from '../../ports/vault.ts';
import { lastRecordOf, markAfter, provenMark } from '../../runtime/read-mark.ts';
import { secretBeforeRotation } from './superseded-webhook-records.ts';

export interface ExpiredSecretsContext {
  readonly events: Pick<EventStore, 'head' | 'readAll' | 'readStream'>;
  readonly marks: PolicyMarks;
  readonly vault: Pick<Vault, 'delete'>;
  readonly clock: Pick<Clock, 'now'>;
}

const POLICY = 'webhook-secret-expiry';
/** A small page, because each event may be almost as large as an append may be. */
const PAGE_EVENTS_MAX = 100;

/**
 * Reads the log from where it stopped, up to the first rotation whose secret still signs. The secrets of later
 * rotations still sign too, because all have the same time. Rejects if the log, the marks or the vault cannot be
 * reached. Resolves early when the signal is aborted.
 */
export async function removeExpiredWebhookSecrets(
  context: ExpiredSecretsContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  const { events, marks } = context;
  const head = await events.head();
  let mark = await startOf(context);
  let position = mark?.position ?? LOG_START;
  while (position < head && !signal.aborted) {
    const page = await events.readAll(position, PAGE_EVENTS_MAX);
    const passed = await passAll(context, page);
    const last = passed.at(-1);
    if (last === undefined) return;
    ({ position } = last);
    mark = markAfter(mark, position, lastRecordOf(passed));
    if (mark !== null) await marks.save(POLICY, mark);
    if (passed.length < page.length) return;
  }
}

/**
 * Returns where the last sweep stopped, if this is the same log; null for the log's start. Removing twice is harmless.
 */
async function startOf({ events, marks }: ExpiredSecretsContext): Promise<ReadMark | null> {
  const mark = await marks.read(POLICY);
  return mark === null ? null : provenMark(events, mark);
}

/** Passes events in order and returns those that are done. They are whole appends. */
async function passAll(
  context: ExpiredSecretsContext,
  page: readonly RecordedEvent[],
): Promise<readonly RecordedEvent[]> {
  const passed: RecordedEvent[] = [];
  for (const append of wholeAppends(page)) {
    for (const event of append) if (!(await pass(context, event))) return passed;
    passed.push(...append);
  }
  return passed;
}

/** Removes the secret that the event rotated out. Resolves false if a node may still sign with it. */
async function pass({ events, vault, clock }: ExpiredSecretsContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'WebhookSecretRotated' || categoryOf(recorded.stream) !== accounts.category) return true;
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type !== 'WebhookSecretRotated') return true;
  const removableAt = plusMs(timestamp(event.data.previous_valid_until), WEBHOOK_SECRET_REMOVAL_MARGIN_MS);
  if (clock.now() < removableAt) return false;
  const secret = await secretBeforeRotation(events, recorded, event.data.webhook_id);
  await vault.delete(uuid<AccountId>(entityIdOf(recorded.stream)), secret);
  return true;
}
