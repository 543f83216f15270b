/**
 * Creates, changes and deletes webhooks. The rules are decided on the account's own stream.
 *
 * Invariants: a URL is checked before it is stored. URLs and secrets are in the vault before the event that names
 * them, and are removed after the event that supersedes them. Each has a vault record of its own, so removing the
 * record of one webhook never removes one that another webhook uses.
 */
import { coversSelection, type RepositorySelection } from '../../access-token/repository-selection.ts';
import { accounts } from '../../account/evolve.ts';
import type { Account } from '../../account/state.ts';
import type { WebhookTarget } from '../../account/webhooks/commands.ts';
import { decideWebhook } from '../../account/webhooks/decide.ts';
import type { Webhook } from '../../account/webhooks/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Uuid, type WebhookId } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import { WEBHOOKS_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';
import type { OutgoingRequests } from '../../ports/outgoing-requests.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { unlessErased } from '../accounts/erased-account-refusal.ts';

/** How long deliveries are signed with the previous secret too, after a rotation. */
export const WEBHOOK_SECRET_OVERLAP_MS = 24 * 60 * 60_000;

export type WebhookContext = Context & { readonly vault: Vault; readonly outgoing: Pick<OutgoingRequests, 'check'> };

/** A caller that reads an account's webhooks. */
export interface WebhookViewer {
  readonly account: AccountId;
  /**
   * The repositories that the caller may use. A webhook that is notified of any other does not exist for the caller.
   */
  readonly selection: RepositorySelection;
}

export interface WebhookCommandOrigin extends WebhookViewer {
  readonly cause: Cause;
  readonly guarding?: Guarding;
}

/** A webhook with its URL. */
export interface FoundWebhook {
  readonly webhook: Webhook;
  readonly url: string;
}

/** A webhook with its new secret; null if the secret did not change. */
export interface ChangedWebhook extends FoundWebhook {
  readonly secret: string | null;
}

type Refused = { readonly refused: Refusal };
type Reading = Pick<WebhookContext, 'entities' | 'vault'>;
const NOT_FOUND: Refused = { refused: { code: 'webhook-not-found' } };

/** Lists all webhooks that the viewer may see, oldest first. */
export async function listWebhooks(context: Reading, viewer: WebhookViewer): Promise<readonly FoundWebhook[]> {
  const { state } = await context.entities.get(accounts, viewer.account);
  const ids = state.status === 'open' ? [...state.webhooks.keys()] : [];
  const found = await Promise.all(ids.map((id) => findWebhook(context, viewer, id)));
  return found.filter((webhook): webhook is FoundWebhook => !('refused' in webhook));
}

/**
 * The number of times that a webhook's URL may change while it is being read. Internal: only changes during as many
 * reads in a row reach it.
 */
const READS_MAX = 10;

/** Finds a webhook that the viewer may see. A hidden webhook and an unknown one get the same refusal. */
export async function findWebhook(
  context: Reading,
  { account, selection }: WebhookViewer,
  id: WebhookId,
): Promise<FoundWebhook | Refused> {
  let { state } = await context.entities.get(accounts, account);
  for (let read = 0; read < READS_MAX; read += 1) {
    const webhook = state.status === 'open' ? state.webhooks.get(id) : undefined;
    if (webhook === undefined || !coversSelection(selection, webhook.repositories)) return NOT_FOUND;
    const url = await readUrl(context.vault, account, webhook.urlRef);
    if (url !== null) return { webhook, url };
    // The record was removed after the state was read. The log holds the event that superseded it.
    ({ state } = await context.entities.reload(accounts, account));
  }
  throw new Error(`The vault has no URL of webhook ${id}`);
}

export interface NewWebhook {
  readonly url: string;
  readonly events: readonly WebhookEventKind[];
  readonly active: boolean;
}

/**
 * Creates a webhook with a secret that the caller generated. It is notified of the repositories in `origin.selection`.
 */
export async function createWebhook(
  context: WebhookContext,
  origin: WebhookCommandOrigin,
  wanted: NewWebhook,
  secret: string,
): Promise<ChangedWebhook | Refused> {
  const { url, events, active } = wanted;
  const { state } = await context.entities.get(accounts, origin.account);
  // Checked early, before the URL costs a DNS lookup. The decision below is the one that counts.
  if (state.status === 'open' && state.webhooks.size >= WEBHOOKS_MAX) return refuse({ code: 'webhook-limit-reached' });
  const fault = await context.outgoing.check(url);
  if (fault !== null) return refuse({ code: 'webhook-url-refused', fault });
  const id = context.ids.next<WebhookId>();
  const target = await unlessErased(storeTarget(context, origin.account, url, secret));
  if ('refused' in target) return target;
  const created = await execute(context, accounts, origin.account, origin, (account) =>
    decideWebhook(account, origin.selection, { type: 'CreateWebhook', id, target, events, active }),
  );
  if ('refused' in created) {
    await removeRecords(context, origin.account, [target.urlRef, target.secretRef]);
    return created;
  }
  return { webhook: webhookOf(created.entity.state, id), url, secret };
}

/** Returns every refusal that what was written causes, for a form that was refused. Without a URL none is judged. */
export async function refusalsOfWebhook(
  { outgoing }: Pick<WebhookContext, 'outgoing'>,
  { url, events }: { readonly url: string | null; readonly events: readonly WebhookEventKind[] },
): Promise<readonly Refusal[]> {
  const fault = url === null ? null : await outgoing.check(url);
  return [
    ...(fault === null ? [] : [{ code: 'webhook-url-refused', fault } as const]),
    ...(events.length > 0 ? [] : [{ code: 'webhook-events-empty' } as const]),
  ];
}

/**
 * Changes the members that are present. A different URL makes `secret` the webhook's secret and removes the old one.
 */
export async function changeWebhook(
  context: WebhookContext,
  origin: WebhookCommandOrigin,
  id: WebhookId,
  changes: Partial<NewWebhook>,
  secret: string,
): Promise<ChangedWebhook | Refused> {
  const { url, ...settings } = changes;
  const before = await findWebhook(context, origin, id);
  if ('refused' in before) return before;
  if (url === undefined || url === before.url) {
    const changed = await execute(context, accounts, origin.account, origin, (account) =>
      decideWebhook(account, origin.selection, { type: 'ChangeWebhook', id, ...settings }),
    );
    if ('refused' in changed) return changed;
    const webhook = webhookOf(changed.entity.state, id);
    if (webhook.urlRef === before.webhook.urlRef) return { webhook, url: before.url, secret: null };
    const after = await findWebhook(context, origin, id);
    return 'refused' in after ? after : { ...after, secret: null };
  }
  const fault = await context.outgoing.check(url);
  if (fault !== null) return refuse({ code: 'webhook-url-refused', fault });
  const target = await unlessErased(storeTarget(context, origin.account, url, secret));
  if ('refused' in target) return target;
  let superseded: readonly VaultRef[] = [];
  const changed = await execute(context, accounts, origin.account, origin, (account) => {
    // The last call of this function is the one that commits.
    superseded = refsOf(account, id);
    return decideWebhook(account, origin.selection, { type: 'ChangeWebhook', id, target, ...settings });
  });
  await removeRecords(context, origin.account, 'refused' in changed ? [target.urlRef, target.secretRef] : superseded);
  return 'refused' in changed ? changed : { webhook: webhookOf(changed.entity.state, id), url, secret };
}

/** Makes `secret` the webhook's secret. The previous one signs too for `WEBHOOK_SECRET_OVERLAP_MS`. */
export async function rotateWebhookSecret(
  context: WebhookContext,
  origin: WebhookCommandOrigin,
  id: WebhookId,
  secret: string,
): Promise<ChangedWebhook | Refused> {
  const before = await findWebhook(context, origin, id);
  if ('refused' in before) return before;
  const stored = await unlessErased(storeSecret(context, origin.account, secret));
  if ('refused' in stored) return stored;
  const { secretRef } = stored;
  const previousValidUntil = plusMs(context.clock.now(), WEBHOOK_SECRET_OVERLAP_MS);
  let superseded: readonly VaultRef[] = [];
  const rotated = await execute(context, accounts, origin.account, origin, (account) => {
    const previous = account.status === 'open' ? account.webhooks.get(id)?.previousSecret : null;
    superseded = previous == null ? [] : [previous.ref];
    return decideWebhook(account, origin.selection, { type: 'RotateWebhookSecret', id, secretRef, previousValidUntil });
  });
  await removeRecords(context, origin.account, 'refused' in rotated ? [secretRef] : superseded);
  if ('refused' in rotated) return rotated;
  const webhook = webhookOf(rotated.entity.state, id);
  if (webhook.urlRef === before.webhook.urlRef) return { webhook, url: before.url, secret };
  const after = await findWebhook(context, origin, id);
  return 'refused' in after ? after : { ...after, secret };
}

export async function deleteWebhook(
  context: Context & { readonly vault: Vault },
  origin: WebhookCommandOrigin,
  id: WebhookId,
): Promise<{ readonly deleted: WebhookId } | Refused> {
  let superseded: readonly VaultRef[] = [];
  const deleted = await execute(context, accounts, origin.account, origin, (account) => {
    superseded = refsOf(account, id);
    return decideWebhook(account, origin.selection, { type: 'DeleteWebhook', id });
  });
  if ('refused' in deleted) return deleted;
  await removeRecords(context, origin.account, superseded);
  return { deleted: id };
}

/** Returns the references of all vault records of a webhook. */
function refsOf(account: Account, id: WebhookId): readonly VaultRef[] {
  const webhook = account.status === 'open' ? account.webhooks.get(id) : undefined;
  if (webhook === undefined) return [];
  const { urlRef, secretRef, previousSecret } = webhook;
  return previousSecret === null ? [urlRef, secretRef] : [urlRef, secretRef, previousSecret.ref];
}

function webhookOf(account: Account, id: WebhookId): Webhook {
  const webhook = account.status === 'open' ? account.webhooks.get(id) : undefined;
  if (webhook === undefined) throw new TypeError('A webhook that was just written does not exist');
  return webhook;
}

async function storeTarget(
  { vault, ids }: Pick<WebhookContext, 'vault' | 'ids'>,
  account: AccountId,
  url: string,
  secret: string,
): Promise<WebhookTarget> {
  const [urlRef, secretRef] = await Promise.all([
    vault.put(account, 'webhook-url', urlRecord(ids.next(), url)),
    vault.put(account, 'webhook-secret', secret),
  ]);
  return { urlRef, secretRef };
}

async function storeSecret(
  { vault }: Pick<WebhookContext, 'vault'>,
  account: AccountId,
  secret: string,
): Promise<Pick<WebhookTarget, 'secretRef'>> {
  return { secretRef: await vault.put(account, 'webhook-secret', secret) };
}

/** Equal values share a vault record, so the id makes each URL a different value. */
function urlRecord(id: Uuid, url: string): string {
  return canonicalJson({ id, url });
}

async function readUrl(vault: Vault, account: AccountId, ref: VaultRef): Promise<string | null> {
  const record = await vault.get(account, 'webhook-url', ref);
  return record === null ? null : parseUrlRecord(record);
}

function parseUrlRecord(record: string): string {
  const { url } = JSON.parse(record) as { readonly url: string };
  return url;
}

async function removeRecords({ vault }: Pick<WebhookContext, 'vault'>, account: AccountId, refs: readonly VaultRef[]) {
  await Promise.all(refs.map((ref) => vault.delete(account, ref)));
}
