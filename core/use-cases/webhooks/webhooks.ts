/**
 * Creating, changing and deleting webhooks; the rules are decided in the account's own stream.
 *
 * Must stay true: a URL is checked before it is stored; URLs and secrets stand in the vault before the event that
 * names them and leave it after the event that supersedes them, each in a record of its own, so that no record that one
 * webhook gives up is one that another begins to use.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import type { WebhookTarget } from '../../account/commands.ts';
import type { Account, Webhook } from '../../account/state.ts';
import type { WebhookEventKind } from '../../kernel/webhook-events.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Uuid, type WebhookId } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import { WEBHOOK_SECRET_OVERLAP_MS, WEBHOOKS_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { OutgoingRequests } from '../../ports/outgoing-requests.ts';
import { type Vault, VaultError, type VaultRef } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';

export type WebhookContext = Context & { readonly vault: Vault; readonly outgoing: OutgoingRequests };

export interface WebhookCommandOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding?: Guarding;
}

/** A webhook with its URL. */
export interface FoundWebhook {
  readonly webhook: Webhook;
  readonly url: string;
}

/** With the secret that its receiver needs to know; null where it knows it already. */
export interface ChangedWebhook extends FoundWebhook {
  readonly secret: string | null;
}

type Refused = { readonly refused: Refusal };
type Reading = Pick<WebhookContext, 'entities' | 'vault'>;
const NOT_FOUND: Refused = { refused: { code: 'webhook-not-found' } };

/** All webhooks of the account, oldest first. */
export async function listWebhooks(context: Reading, account: AccountId): Promise<readonly FoundWebhook[]> {
  const { state } = await context.entities.get(accounts, account);
  const ids = state.status === 'open' ? [...state.webhooks.keys()] : [];
  const found = await Promise.all(ids.map((id) => findWebhook(context, account, id)));
  return found.filter((webhook): webhook is FoundWebhook => !('refused' in webhook));
}

/** Times that a webhook's URL may change while it is being read. */
const READS_MAX = 10;

/** The account's webhook, or a refusal that does not tell another account's from none. */
export async function findWebhook(
  context: Reading,
  account: AccountId,
  id: WebhookId,
): Promise<FoundWebhook | Refused> {
  let { state } = await context.entities.get(accounts, account);
  for (let read = 0; read < READS_MAX; read += 1) {
    const webhook = state.status === 'open' ? state.webhooks.get(id) : undefined;
    if (webhook === undefined) return NOT_FOUND;
    const url = await readUrl(context.vault, account, webhook.urlRef);
    if (url !== null) return { webhook, url };
    // Its record was given up since the state was read: the log says for what.
    ({ state } = await context.entities.reload(accounts, account));
  }
  throw new Error(`The vault has no URL of webhook ${id}`);
}

export interface NewWebhook {
  readonly url: string;
  readonly events: readonly WebhookEventKind[];
  readonly active: boolean;
}

/** Makes a webhook with a secret that the caller generated. */
export async function createWebhook(
  context: WebhookContext,
  origin: WebhookCommandOrigin,
  wanted: NewWebhook,
  secret: string,
): Promise<ChangedWebhook | Refused> {
  const { url, events, active } = wanted;
  const { state } = await context.entities.get(accounts, origin.account);
  // Before its URL costs a lookup; what counts is decided below.
  if (state.status === 'open' && state.webhooks.size >= WEBHOOKS_MAX) return refuse({ code: 'webhook-limit-reached' });
  const fault = await context.outgoing.check(url);
  if (fault !== null) return refuse({ code: 'webhook-url-refused', fault });
  const id = context.ids.next<WebhookId>();
  const target = await unlessErased(storeTarget(context, origin.account, url, secret));
  if ('refused' in target) return target;
  const created = await execute(context, accounts, origin.account, origin, (account) =>
    decideAccount(account, { type: 'CreateWebhook', id, target, events, active }),
  );
  if ('refused' in created) {
    await forget(context, origin.account, [target.urlRef, target.secretRef]);
    return created;
  }
  return { webhook: webhookOf(created.entity.state, id), url, secret };
}

/** Changes what is given. A URL that is another makes `secret` the webhook's, and the one before is forgotten. */
export async function changeWebhook(
  context: WebhookContext,
  origin: WebhookCommandOrigin,
  id: WebhookId,
  changes: Partial<NewWebhook>,
  secret: string,
): Promise<ChangedWebhook | Refused> {
  const { url, ...settings } = changes;
  const before = await findWebhook(context, origin.account, id);
  if ('refused' in before) return before;
  if (url === undefined || url === before.url) {
    const changed = await execute(context, accounts, origin.account, origin, (account) =>
      decideAccount(account, { type: 'ChangeWebhook', id, ...settings }),
    );
    if ('refused' in changed) return changed;
    const webhook = webhookOf(changed.entity.state, id);
    if (webhook.urlRef === before.webhook.urlRef) return { webhook, url: before.url, secret: null };
    const after = await findWebhook(context, origin.account, id);
    return 'refused' in after ? after : { ...after, secret: null };
  }
  const fault = await context.outgoing.check(url);
  if (fault !== null) return refuse({ code: 'webhook-url-refused', fault });
  const target = await unlessErased(storeTarget(context, origin.account, url, secret));
  if ('refused' in target) return target;
  let superseded: readonly VaultRef[] = [];
  const changed = await execute(context, accounts, origin.account, origin, (account) => {
    // Of the last decision, the one that commits.
    superseded = refsOf(account, id);
    return decideAccount(account, { type: 'ChangeWebhook', id, target, ...settings });
  });
  await forget(context, origin.account, 'refused' in changed ? [target.urlRef, target.secretRef] : superseded);
  return 'refused' in changed ? changed : { webhook: webhookOf(changed.entity.state, id), url, secret };
}

/** Makes `secret` the webhook's; the one before signs too for a day. */
export async function rotateWebhookSecret(
  context: WebhookContext,
  origin: WebhookCommandOrigin,
  id: WebhookId,
  secret: string,
): Promise<ChangedWebhook | Refused> {
  const before = await findWebhook(context, origin.account, id);
  if ('refused' in before) return before;
  const stored = await unlessErased(storeSecret(context, origin.account, secret));
  if ('refused' in stored) return stored;
  const { secretRef } = stored;
  const previousValidUntil = plusMs(context.clock.now(), WEBHOOK_SECRET_OVERLAP_MS);
  let superseded: readonly VaultRef[] = [];
  const rotated = await execute(context, accounts, origin.account, origin, (account) => {
    const previous = account.status === 'open' ? account.webhooks.get(id)?.previousSecret : null;
    superseded = previous == null ? [] : [previous.ref];
    return decideAccount(account, { type: 'RotateWebhookSecret', id, secretRef, previousValidUntil });
  });
  await forget(context, origin.account, 'refused' in rotated ? [secretRef] : superseded);
  if ('refused' in rotated) return rotated;
  const webhook = webhookOf(rotated.entity.state, id);
  if (webhook.urlRef === before.webhook.urlRef) return { webhook, url: before.url, secret };
  const after = await findWebhook(context, origin.account, id);
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
    return decideAccount(account, { type: 'DeleteWebhook', id });
  });
  if ('refused' in deleted) return deleted;
  await forget(context, origin.account, superseded);
  return { deleted: id };
}

/** What the vault holds of a webhook. */
function refsOf(account: Account, id: WebhookId): readonly VaultRef[] {
  const webhook = account.status === 'open' ? account.webhooks.get(id) : undefined;
  if (webhook === undefined) return [];
  const { urlRef, secretRef, previousSecret } = webhook;
  return previousSecret === null ? [urlRef, secretRef] : [urlRef, secretRef, previousSecret.ref];
}

function webhookOf(account: Account, id: WebhookId): Webhook {
  const webhook = account.status === 'open' ? account.webhooks.get(id) : undefined;
  if (webhook === undefined) throw new TypeError('A webhook that was just written is not there');
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

/** The account may be erased while its webhook is made: then it is as if it never was. */
async function unlessErased<Stored>(storing: Promise<Stored>): Promise<Stored | Refused> {
  try {
    return await storing;
  } catch (error) {
    if (error instanceof VaultError && error.code === 'account-erased') return refuse({ code: 'account-not-found' });
    throw error;
  }
}

/** Equal values share a record of the vault: the id makes each URL a value of its own. */
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

async function forget({ vault }: Pick<WebhookContext, 'vault'>, account: AccountId, refs: readonly VaultRef[]) {
  await Promise.all(refs.map((ref) => vault.delete(account, ref)));
}
