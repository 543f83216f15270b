/**
 * What each event of an account's log is called on pages, and what happened in words.
 *
 * Invariants: every record event of the catalogue has its words. An event is shown as it was stored, in whatever
 * version, so nothing here relies on a member: what an old form lacks is left out.
 */
import { categoryOf, entityIdOf, type RecordedEvent } from '../../../core/kernel/envelope.ts';
import { parseUuid, type RepositoryId } from '../../../core/kernel/ids.ts';
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from '../../../core/kernel/json.ts';
import type { LogNames } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import { type Content, html } from '../layout/html.ts';
import { counted, shownName } from '../repositories/shown-text.ts';

type Told = Pick<RecordedEvent, 'type' | 'stream' | 'data'>;

interface Telling {
  readonly event: Told;
  readonly data: JsonObject;
  /** A text of the data in bold; nothing if the data lack it. */
  readonly name: (member: string) => Content;
  /** The repository that the event is about, by its current name, or else by that in the event. */
  readonly repository: Content;
}

interface Words {
  /** In the list of types. */
  readonly label: string;
  /** The label by default. */
  readonly tell?: (telling: Telling) => Content;
  /** The layer's colour in the list: `created`, `force` for what takes away, `undone`. */
  readonly layer?: 'created' | 'force' | 'undone';
}

const ACCOUNT: Readonly<Record<string, Words>> = {
  AccountCreated: { label: 'Created the account', layer: 'created' },
  Abandoned: { label: 'Gave up the sign-up', layer: 'force' },
  PlanChanged: { label: 'Changed the plan', tell: ({ name }) => html`Changed the plan to ${name('plan')}` },
  PasswordChanged: { label: 'Changed the password' },
  EmailChanged: { label: 'Changed the email address' },
  AccountClosed: { label: 'Deleted the account', layer: 'force' },
  AccountReopened: { label: 'Undid the deletion of the account', layer: 'undone' },
  AccountErased: { label: 'Erased the account', layer: 'force' },
  LogTailLost: {
    label: 'Accepted that the log lost its end',
    tell: ({ name }) => html`Accepted that the log, of which ${name('size')} entries were signed, lost its end`,
    layer: 'force',
  },
  LogKeyEndorsed: { label: 'Named the key that signs the log from here on' },
  MasterKeyRotated: { label: 'Wrapped the key of your data again, under a new master key' },
  Claimed: { label: 'Reserved a name or an address', tell: ({ event }) => `Reserved the ${claimOf(event)}` },
  Confirmed: {
    label: 'Linked a name or an address to the account',
    tell: ({ event }) => `Linked the ${claimOf(event)} to the account`,
  },
  Released: {
    label: 'Released a name or an address',
    tell: ({ event }) => `Released the ${claimOf(event)}`,
    layer: 'force',
  },
  UsageRecorded: {
    label: 'Recorded the usage of a day',
    tell: ({ name }) => html`Recorded the usage of ${name('day')}`,
  },
};

const REPOSITORIES: Readonly<Record<string, Words>> = {
  RepositoryCreated: about('Created the repository', 'Created a repository', 'created'),
  RepositoryDescribed: about('Changed the description of', 'Changed a description'),
  RepositoryRenamed: {
    label: 'Renamed a repository',
    tell: ({ name }) => html`Renamed the repository ${name('previous_name')} to ${name('name')}`,
  },
  RepositoryDeleted: about('Deleted the repository', 'Deleted a repository', 'force'),
  RepositoryRestored: about('Undeleted the repository', 'Undeleted a repository', 'undone'),
  RepositoryRebuilt: {
    label: "Made a repository of another account's manifest",
    tell: ({ name }) =>
      html`Made the repository ${name('repository_id')} of the manifest of ${name('source_repository_id')}`,
    layer: 'force',
  },
  RefsUpdated: { label: 'Pushed, or restored refs', tell: tellPush },
  RefUpdatesPart: { label: 'Stored a part of a wide push' },
  DefaultBranchChanged: {
    label: 'Changed a default branch',
    tell: ({ name, repository }) => html`Made ${name('default_branch')} the default branch of ${repository}`,
  },
  LayersCompacted: about('Compacted the storage of', 'Compacted the storage of a repository'),
  LayersExpired: { label: 'Removed from storage', tell: tellExpiry, layer: 'force' },
  RepositoryClosed: about('Closed to pushes, for its deletion:', 'Closed a repository to pushes', 'force'),
  RepositoryReopened: about('Opened again to pushes:', 'Opened a repository to pushes again', 'undone'),
};

const ACCESS: Readonly<Record<string, Words>> = {
  AccessTokenCreated: named('Created the access token', 'Created an access token', 'created'),
  AccessTokenExchanged: { label: 'Exchanged an identity token for an access token', layer: 'created' },
  AccessTokenUpdated: {
    label: 'Changed an access token',
    tell: ({ data, name }) =>
      data['name'] === undefined ? 'Changed an access token' : html`Changed the access token ${name('name')}`,
  },
  AccessTokenRevoked: { label: 'Revoked an access token', layer: 'force' },
  DeviceLoginRequested: { label: 'A device asked to log in' },
  DeviceLoginGranted: named('Let a device log in, with the token', 'Let a device log in', 'created'),
  DeviceLoginDenied: { label: 'Denied a device', layer: 'force' },
  DeviceLoginExpired: { label: 'The login of a device expired' },
  DeviceLoginClaimed: { label: 'A device fetched its token' },
  DeviceLoginClosed: { label: 'The login of a device ended' },
  TotpEnrolmentBegun: named('Began to add the app', 'Began to add an app as second factor'),
  TotpActivated: { label: 'Activated an app as second factor', layer: 'created' },
  TotpCodeUsed: { label: 'Signed in with the code of an app' },
  PasskeyEnrolmentBegun: named('Began to add the passkey', 'Began to add a passkey'),
  PasskeyActivated: { label: 'Activated a passkey', layer: 'created' },
  PasskeyUsed: { label: 'Signed in with a passkey' },
  PasskeyCounterRegressed: { label: 'Refused a passkey that may have been copied', layer: 'force' },
  MfaTokenRenamed: named('Renamed a second factor to', 'Renamed a second factor'),
  MfaTokenDeleted: { label: 'Removed a second factor', layer: 'force' },
  MfaReset: { label: 'Removed all second factors', layer: 'force' },
  TrustRuleCreated: named('Created the trust rule', 'Created a trust rule', 'created'),
  TrustRuleChanged: {
    label: 'Changed a trust rule',
    tell: ({ data, name }) =>
      data['name'] === undefined ? 'Changed a trust rule' : html`Changed the trust rule ${name('name')}`,
  },
  TrustRuleDeleted: { label: 'Deleted a trust rule', layer: 'force' },
};

const CONNECTIONS: Readonly<Record<string, Words>> = {
  WebhookCreated: { label: 'Created a webhook', layer: 'created' },
  WebhookUrlChanged: { label: 'Changed the address of a webhook' },
  WebhookEventsChanged: { label: 'Changed the events of a webhook' },
  WebhookActivated: { label: 'Activated a webhook' },
  WebhookDeactivated: { label: 'Deactivated a webhook' },
  WebhookSecretRotated: { label: 'Gave a webhook a new secret' },
  WebhookDeleted: { label: 'Deleted a webhook', layer: 'force' },
  StorageBucketCreated: named('Added the storage bucket', 'Added a storage bucket', 'created'),
  StorageBucketRenamed: named('Renamed a storage bucket to', 'Renamed a storage bucket'),
  StorageBucketPlaceChanged: { label: 'Changed the place of a storage bucket' },
  StorageBucketAccessChanged: { label: 'Changed the access to a storage bucket' },
  StorageBucketVerified: { label: 'Verified a storage bucket' },
  StorageBucketVerificationFailed: {
    label: 'Could not verify a storage bucket',
    tell: ({ name }) => html`Could not verify a storage bucket: ${name('step')}`,
    layer: 'force',
  },
  DefaultBucketChanged: { label: 'Changed the default storage bucket' },
  StorageBucketDeleted: { label: 'Deleted a storage bucket', layer: 'force' },
};

const WORDS: Readonly<Record<string, Words>> = { ...REPOSITORIES, ...ACCESS, ...CONNECTIONS, ...ACCOUNT };

/** The types that entries can have, with their labels, in groups. */
export const ENTRY_TYPES: readonly {
  readonly group: string;
  readonly types: readonly (readonly [string, string])[];
}[] = [
  ['Repositories', REPOSITORIES] as const,
  ['Access', ACCESS] as const,
  ['Webhooks and storage', CONNECTIONS] as const,
  ['Account', ACCOUNT] as const,
].map(([group, words]) => ({
  group,
  types: Object.entries(words).map(([type, { label }]) => [type, label] as const),
}));

function about(before: string, label: string, layer?: Words['layer']): Words {
  return { label, tell: ({ repository }) => html`${before} ${repository}`, ...(layer === undefined ? {} : { layer }) };
}

function named(before: string, label: string, layer?: Words['layer']): Words {
  return { label, tell: ({ name }) => html`${before} ${name('name')}`, ...(layer === undefined ? {} : { layer }) };
}

/** Says what happened. */
export function tellEvent(event: Told, names: Pick<LogNames, 'repositories'>): Content {
  const { data } = event;
  const telling = {
    event,
    data,
    name: (member: string) => bold(data[member]),
    repository: repositoryText(event, names),
  };
  const words = WORDS[event.type];
  return words?.tell?.(telling) ?? words?.label ?? event.type;
}

/** Returns the stylesheet's name for the event's layer. */
export function layerOf({ type, data }: Told): string {
  if (type === 'RefsUpdated') return pushLayer(data);
  return WORDS[type]?.layer ?? '';
}

function bold(value: JsonValue | undefined): Content {
  return typeof value === 'string' && html`<strong><bdi>${shownName(value)}</bdi></strong>`;
}

/** Returns the repository that an event is about; null if it is about none, or about several. */
export function repositoryIdOf({ stream, data }: Pick<Told, 'stream' | 'data'>): RepositoryId | null {
  const id = categoryOf(stream) === 'repository' ? entityIdOf(stream) : data['repository_id'];
  return typeof id === 'string' ? parseUuid<RepositoryId>(id) : null;
}

function repositoryText(event: Told, { repositories }: Pick<LogNames, 'repositories'>): Content {
  const id = repositoryIdOf(event);
  const known = id === null ? undefined : repositories.get(id);
  return bold(event.data['name'] ?? known) || 'a deleted repository';
}

function claimOf({ stream }: Pick<Told, 'stream'>): string {
  return categoryOf(stream) === 'email' ? 'email address' : 'username';
}

/** Refs that a row names; the others are counted. */
export const REFS_NAMED_MAX = 3;

function tellPush({ data, repository }: Telling): Content {
  const updates = updatesOf(data);
  const many = updates.length === 0 ? countOf(data['parts'] ?? null) : updates.length;
  const { door } = data;
  const by = typeof door === 'string' ? (DOORS[door] ?? '') : '';
  const verb = isJsonObject(data['restored'] ?? null) ? 'Restored' : 'Pushed to';
  if (updates.length === 0) return html`${verb} ${counted(many, 'ref')} of ${repository}${by}`;
  const shown = updates.slice(0, REFS_NAMED_MAX).map(({ ref, mark }) => {
    const name = html`<strong><bdi>${shownName(ref.replace(/^refs\/(heads|tags)\//, ''))}</bdi></strong>`;
    return html`${name}${mark !== null && html` <span class="mark bad">${mark}</span>`}`;
  });
  const listed = shown.map((one, at) => html`${at > 0 && ', '}${one}`);
  const more = updates.length - shown.length;
  return html`${verb} ${listed}${more > 0 && ` and ${counted(more, 'more ref')}`} of ${repository}${by}`;
}

/** What a push of git's, or of an older version, does not say. */
const DOORS: Readonly<Record<string, string>> = {
  api: ' over the API',
  website: ' on the website',
  admin: ' with strata-admin',
};

const MARKS: Readonly<Record<string, string>> = { 'force-push': 'force push', delete: 'deleted' };

function updatesOf(data: JsonObject): readonly { readonly ref: string; readonly mark: string | null }[] {
  const { updates = [] } = data;
  if (!isJsonArray(updates)) return [];
  return updates.flatMap((update) => {
    if (!isJsonObject(update) || typeof update['ref'] !== 'string') return [];
    const { ref, kind } = update;
    return [{ ref, mark: typeof kind === 'string' ? (MARKS[kind] ?? null) : null }];
  });
}

/** Whether an event may have left commits that no ref reaches. The kinds of a wide push stand in its parts. */
export function mayLeaveObjects({ type, data }: Told): boolean {
  if (type !== 'RefsUpdated') return false;
  return isJsonObject(data['parts'] ?? null) || updatesOf(data).some(({ mark }) => mark !== null);
}

function countOf(parts: JsonValue): number {
  const updates = isJsonObject(parts) ? parts['updates'] : undefined;
  return typeof updates === 'number' ? updates : 0;
}

function pushLayer(data: JsonObject): string {
  if (isJsonObject(data['restored'] ?? null)) return 'undone';
  return updatesOf(data).some(({ mark }) => mark !== null) ? 'force' : 'pushed';
}

const EXPIRY: Readonly<Record<string, string>> = {
  retention: 'what had passed retention',
  purge: 'what was purged',
  erasure: 'everything, for the erasure of the account',
  'bucket-deleted': 'what lay in a deleted bucket',
};

function tellExpiry({ data, repository }: Telling): Content {
  const { reason } = data;
  const what = typeof reason === 'string' ? EXPIRY[reason] : undefined;
  return html`Removed from storage ${what ?? 'what no ref reached'}: ${repository}`;
}
