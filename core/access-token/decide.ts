/** Decides the commands of an access token. The use cases have checked the caller's permission before. */
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import type { RepositoryId, Timestamp } from '../kernel/ids.ts';
import { TOKEN_NAME_LENGTH_MAX } from '../kernel/limits.ts';
import type { Refusal } from '../kernel/refusal.ts';
import { codePointCount } from '../kernel/text.ts';
import type { AccessTokenCommand, AccessTokenSettings } from './commands.ts';
import type { AccessTokenEvent, AccessTokenUpdated } from './events.ts';
import { type AccessToken, type ActiveAccessToken, isExpired } from './state.ts';

export function decideAccessToken(state: AccessToken, command: AccessTokenCommand): Decision<AccessTokenEvent> {
  switch (command.type) {
    case 'CreateAccessToken': {
      if (state.status !== 'absent') throw new TypeError('Two access tokens with one id: the secret is not random');
      const checked = newTokenSettings(command.settings, command.ownsRepository, command.now);
      if ('refused' in checked) return checked;
      const { settings } = checked;
      return accept<AccessTokenEvent>({
        type: 'AccessTokenCreated',
        data: {
          account: command.account,
          name: settings.name,
          scope: settings.scope,
          grants: settings.grants,
          repository_ids: settings.repositoryIds,
          expires_at: settings.expiresAt,
          secret_hash: command.secretHash,
          token_prefix: command.tokenPrefix,
        },
      });
    }
    case 'ExchangeIdentityToken':
      return decideExchange(state, command);
    case 'UpdateAccessToken': {
      if (state.status !== 'active' || isExpired(state, command.now)) return refuse({ code: 'token-not-found' });
      return decideUpdate(state, command.changes, command.ownsRepository, command.now);
    }
    case 'RevokeAccessToken':
      if (state.status !== 'active' && state.status !== 'exchanged') return refuse({ code: 'token-not-found' });
      return accept<AccessTokenEvent>({ type: 'AccessTokenRevoked', data: { reason: 'deleted' } });
  }
}

/** Returns the settings of a new token, each grant and repository once, or why no token may have them. */
export function newTokenSettings(
  wanted: AccessTokenSettings,
  ownsRepository: (id: RepositoryId) => boolean,
  now: Timestamp,
): { readonly settings: AccessTokenSettings } | { readonly refused: Refusal } {
  const settings = { ...wanted, grants: unique(wanted.grants), repositoryIds: unique(wanted.repositoryIds) };
  const refused =
    settingsRefusal(settings) ??
    expiryRefusal(settings.expiresAt, now) ??
    repositoriesRefusal(settings.repositoryIds, ownsRepository);
  return refused === null ? { settings } : refuse(refused);
}

/**
 * The id is derived from the identity token, so a stream that is there means that the identity token was used before.
 */
function decideExchange(
  state: AccessToken,
  { token }: Extract<AccessTokenCommand, { type: 'ExchangeIdentityToken' }>,
): Decision<AccessTokenEvent> {
  if (state.status !== 'absent') return refuse({ code: 'oidc-exchange-failed' });
  return accept<AccessTokenEvent>({
    type: 'AccessTokenExchanged',
    data: {
      account: token.account,
      trust_rule_id: token.trustRule.id,
      rule_epoch: token.trustRule.epoch,
      subject_ref: token.subjectRef,
      scope: token.scope,
      grants: token.grants,
      repository_ids: token.repositoryIds,
      expires_at: token.expiresAt,
      secret_hash: token.secretHash,
      token_prefix: token.tokenPrefix,
    },
  });
}

function decideUpdate(
  state: ActiveAccessToken,
  changes: Partial<AccessTokenSettings>,
  ownsRepository: (id: RepositoryId) => boolean,
  now: Timestamp,
): Decision<AccessTokenEvent> {
  const merged: AccessTokenSettings = {
    name: changes.name ?? state.name,
    scope: changes.scope ?? state.scope,
    grants: unique(changes.grants ?? state.grants),
    repositoryIds: unique(changes.repositoryIds ?? state.repositoryIds),
    expiresAt: changes.expiresAt === undefined ? state.expiresAt : changes.expiresAt,
  };
  // A list may keep the id of a repository that was deleted since. Only the ids that are added must exist.
  const listed = new Set(state.repositoryIds);
  const added = merged.repositoryIds.filter((id) => !listed.has(id));
  const refused =
    settingsRefusal(merged) ??
    (changes.expiresAt === undefined ? null : expiryRefusal(changes.expiresAt, now)) ??
    repositoriesRefusal(added, ownsRepository);
  if (refused !== null) return refuse(refused);
  const data: AccessTokenUpdated['data'] = {
    ...(merged.name === state.name ? {} : { name: merged.name }),
    ...(merged.scope === state.scope ? {} : { scope: merged.scope }),
    ...(sameItems(merged.grants, state.grants) ? {} : { grants: merged.grants }),
    ...(sameItems(merged.repositoryIds, state.repositoryIds) ? {} : { repository_ids: merged.repositoryIds }),
    ...(merged.expiresAt === state.expiresAt ? {} : { expires_at: merged.expiresAt }),
  };
  return Object.keys(data).length === 0
    ? accept<AccessTokenEvent>()
    : accept<AccessTokenEvent>({ type: 'AccessTokenUpdated', data });
}

function settingsRefusal(settings: AccessTokenSettings): Refusal | null {
  return settingsRefusals(settings)[0] ?? null;
}

/** Returns every refusal that the settings alone cause. */
export function settingsRefusals(settings: Omit<AccessTokenSettings, 'expiresAt'>): readonly Refusal[] {
  const nameLength = codePointCount(settings.name);
  const isNamed = nameLength >= 1 && nameLength <= TOKEN_NAME_LENGTH_MAX;
  return [...(isNamed ? [] : [{ code: 'token-name-length' } as const]), ...permissionsRefusals(settings)];
}

/** Returns why nothing may have these permissions: neither a token nor a trust rule, which gives out tokens. */
export function permissionsRefusals({
  grants,
  scope,
  repositoryIds,
}: Pick<AccessTokenSettings, 'grants' | 'scope' | 'repositoryIds'>): readonly Refusal[] {
  const refusals: Refusal[] = [];
  if (grants.length === 0) refusals.push({ code: 'token-grants-empty' });
  if (scope === 'SELECTED_REPO' && repositoryIds.length === 0) {
    refusals.push({ code: 'token-scope-needs-repositories' });
  }
  if (scope === 'ALL_REPO' && repositoryIds.length > 0) refusals.push({ code: 'token-scope-takes-no-repositories' });
  return refusals;
}

export function expiryRefusal(expiresAt: Timestamp | null, now: Timestamp): Refusal | null {
  return expiresAt !== null && expiresAt <= now ? { code: 'token-expiry-not-in-future' } : null;
}

export function repositoriesRefusal(
  ids: readonly RepositoryId[],
  ownsRepository: (id: RepositoryId) => boolean,
): Refusal | null {
  const unknown = ids.filter((id) => !ownsRepository(id));
  return unknown.length > 0 ? { code: 'token-unknown-repositories', ids: unknown } : null;
}

export function unique<Item>(items: readonly Item[]): readonly Item[] {
  return [...new Set(items)];
}

export function sameItems<Item>(a: readonly Item[], b: readonly Item[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
