/**
 * The policy that removes a webhook's secret from the vault once its time beside the one after it is over.
 *
 * Must stay true: no secret goes while a node may still sign with it; rotations are passed in the order of the log, none
 * before its secret is gone, so that the mark is all there is to remember. Any number of nodes may sweep.
 */
import { accounts } from '../../account/evolve.ts';
import type { AccountEvent } from '../../account/events.ts';
import { readEvent } from '../../kernel/decider.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition, type RecordedEvent } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, timestamp, uuid } from '../../kernel/ids.ts';
import { WEBHOOK_SECRET_REMOVAL_MARGIN_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { Vault } from '../../ports/vault.ts';
import { markOf, standingPosition } from '../read-mark.ts';
import { secretBeforeRotation } from './superseded-webhook-records.ts';

export interface ExpiredSecretsContext {
  readonly events: Pick<EventStore, 'head' | 'readAll' | 'readStream'>;
  readonly marks: PolicyMarks;
  readonly vault: Pick<Vault, 'delete'>;
  readonly clock: Pick<Clock, 'now'>;
}

const POLICY = 'webhook-secret-expiry';
/** Each may be near the bound of an append. */
const PAGE_EVENTS_MAX = 100;

/**
 * Reads the log on from where it stopped, up to the first rotation whose secret still signs: every secret has the same
 * time, so those of later rotations do too. Rejects when log, marks or vault cannot be reached; ends early, without
 * an error, once the signal is aborted.
 */
export async function removeExpiredWebhookSecrets(
  context: ExpiredSecretsContext,
  signal: { readonly aborted: boolean },
): Promise<void> {
  const { events, marks } = context;
  const head = await events.head();
  let position = await startOf(context);
  while (position < head && !signal.aborted) {
    const page = await events.readAll(position, PAGE_EVENTS_MAX);
    const passed = await passAll(context, page);
    const last = passed.at(-1);
    if (last !== undefined) await marks.save(POLICY, markOf(last));
    if (last === undefined || passed.length < page.length) return;
    ({ position } = last);
  }
}

/** Where it stopped the last time, if this is the log it read; else the log's start: what is gone stays gone. */
async function startOf({ events, marks }: ExpiredSecretsContext): Promise<LogPosition> {
  const mark = await marks.read(POLICY);
  return (mark === null ? null : await standingPosition(events, mark)) ?? LOG_START;
}

/** The first of the events that are done with. */
async function passAll(
  context: ExpiredSecretsContext,
  page: readonly RecordedEvent[],
): Promise<readonly RecordedEvent[]> {
  for (const [index, event] of page.entries()) {
    if (!(await pass(context, event))) return page.slice(0, index);
  }
  return page;
}

/** False while the secret that the event rotates out may still be signed with. */
async function pass({ events, vault, clock }: ExpiredSecretsContext, recorded: RecordedEvent): Promise<boolean> {
  if (recorded.type !== 'WebhookSecretRotated' || categoryOf(recorded.stream) !== accounts.category) return true;
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type !== 'WebhookSecretRotated') return true;
  const goesAt = plusMs(timestamp(event.data.previous_valid_until), WEBHOOK_SECRET_REMOVAL_MARGIN_MS);
  if (clock.now() < goesAt) return false;
  const secret = await secretBeforeRotation(events, recorded, event.data.webhook_id);
  await vault.delete(uuid<AccountId>(entityIdOf(recorded.stream)), secret);
  return true;
}
