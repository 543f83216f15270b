/**
 * The grants of access tokens, and which others each implies: every permission check uses this table
 * (docs/interface.md, Grants).
 */

export const GRANTS = [
  'ALL',
  'GIT_HTTP_READ',
  'GIT_HTTP_WRITE',
  'API_REPOS_READ',
  'API_REPOS_WRITE',
  'API_COMMITS_READ',
  'API_WEBHOOKS',
  'API_STORAGE',
  'API_OIDC_TRUST',
] as const;

export type Grant = (typeof GRANTS)[number];

export const SCOPES = ['ALL_REPO', 'SELECTED_REPO'] as const;
export type Scope = (typeof SCOPES)[number];

/** The grants that a grant implies in addition to itself. `ALL` is not listed: it passes every check. */
const IMPLIED: { readonly [G in Grant]?: readonly Grant[] } = {
  GIT_HTTP_WRITE: ['GIT_HTTP_READ'],
  API_REPOS_WRITE: ['API_REPOS_READ'],
};

/** Returns whether a token with the grants `held` passes a check for `needed`. */
export function permits(held: readonly Grant[], needed: Grant): boolean {
  return held.some((grant) => grant === 'ALL' || grant === needed || IMPLIED[grant]?.includes(needed) === true);
}
