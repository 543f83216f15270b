/** What grants, scopes and expiries are called on pages. */
import type { Grant, Scope } from '../../../core/kernel/grants.ts';
import type { RepositoryId, Timestamp } from '../../../core/kernel/ids.ts';
import type { OwnRepository } from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { type Content, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';

/** Every grant but `ALL`, which is a choice of its own. */
export const GRANT_LABELS: { readonly [G in Exclude<Grant, 'ALL'>]: string } = {
  GIT_HTTP_READ: 'Clone and fetch',
  GIT_HTTP_WRITE: 'Push, clone and fetch',
  API_REPOS_READ: 'List repositories',
  API_REPOS_WRITE: 'Create, change and delete repositories',
  API_COMMITS_READ: 'Read branches, commits and files',
  API_WEBHOOKS: 'Manage webhooks',
  API_STORAGE: 'Manage storage buckets',
  API_OIDC_TRUST: 'Manage trust rules of CI',
};

/** Repositories of one token that a list names; the others are counted. */
export const NAMES_MAX = 3;

export function grantsText(grants: readonly Grant[]): string {
  return grants.map((grant) => (grant === 'ALL' ? 'Everything' : GRANT_LABELS[grant])).join(' · ');
}

export function repositoriesText(
  { scope, repositoryIds }: { readonly scope: Scope; readonly repositoryIds: readonly RepositoryId[] },
  own: readonly Pick<OwnRepository, 'id' | 'name'>[],
): string {
  if (scope === 'ALL_REPO') return 'All';
  const wanted = new Set(repositoryIds);
  const names = own.flatMap(({ id, name }) => (wanted.has(id) ? [name] : []));
  const rest = repositoryIds.length - Math.min(names.length, NAMES_MAX);
  const shown = names.slice(0, NAMES_MAX);
  if (rest > 0) shown.push(`${rest} ${names.length > NAMES_MAX ? 'more' : 'deleted'}`);
  return shown.join(', ');
}

export function expiryText(expiresAt: Timestamp | null, now: Timestamp): Content {
  return expiresAt === null ? html`<span class="soft">Never</span>` : timeAgo(expiresAt, now);
}
