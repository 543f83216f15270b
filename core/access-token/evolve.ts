/** Folds an access token's events. */
import type { Decider } from '../kernel/decider.ts';
import { type RepositoryId, type Timestamp, timestamp, uuid } from '../kernel/ids.ts';
import { type AccessTokenEvent, accessTokenEventKinds } from './events.ts';
import type { AccessToken } from './state.ts';

function evolveAccessToken(state: AccessToken, event: AccessTokenEvent, at: Timestamp): AccessToken {
  switch (event.type) {
    case 'AccessTokenCreated':
      return {
        status: 'active',
        account: uuid(event.data.account),
        name: event.data.name,
        scope: event.data.scope,
        grants: event.data.grants,
        repositoryIds: event.data.repository_ids.map((id) => uuid<RepositoryId>(id)),
        expiresAt: event.data.expires_at === null ? null : timestamp(event.data.expires_at),
        secretHash: event.data.secret_hash,
        tokenPrefix: event.data.token_prefix,
        createdAt: at,
      };
    case 'AccessTokenExchanged': {
      const { data } = event;
      return {
        status: 'exchanged',
        account: uuid(data.account),
        trustRule: { id: uuid(data.trust_rule_id), epoch: data.rule_epoch },
        subjectRef: data.subject_ref,
        scope: data.scope,
        grants: data.grants,
        repositoryIds: data.repository_ids.map((id) => uuid<RepositoryId>(id)),
        expiresAt: timestamp(data.expires_at),
        secretHash: data.secret_hash,
        tokenPrefix: data.token_prefix,
        createdAt: at,
      };
    }
    case 'AccessTokenUpdated': {
      if (state.status !== 'active') throw new TypeError('AccessTokenUpdated on a token that is not active');
      const { name, scope, grants, repository_ids, expires_at } = event.data;
      return {
        ...state,
        name: name ?? state.name,
        scope: scope ?? state.scope,
        grants: grants ?? state.grants,
        repositoryIds: repository_ids?.map((id) => uuid<RepositoryId>(id)) ?? state.repositoryIds,
        expiresAt: expires_at === undefined ? state.expiresAt : expires_at === null ? null : timestamp(expires_at),
      };
    }
    case 'AccessTokenRevoked':
      if (state.status !== 'active' && state.status !== 'exchanged') {
        throw new TypeError('AccessTokenRevoked on a token that is not active');
      }
      return { status: 'revoked', account: state.account };
  }
}

export const accessTokens: Decider<AccessToken, AccessTokenEvent> = {
  category: 'accessToken',
  kinds: accessTokenEventKinds,
  initial: { status: 'absent' },
  evolve: evolveAccessToken,
  snapshots: null,
  sizeBytes: (state) => ('repositoryIds' in state ? 600 + 60 * state.repositoryIds.length : 150),
};
