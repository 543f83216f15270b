/**
 * CI systems whose jobs a trust rule can let in: an example of a rule for each, and how its jobs get a token.
 *
 * Invariants: issuer, subject and claims are what the documentation of the system states, at the address beside them. A
 * rule is bound to one repository and one branch by what cannot be made again by somebody else where the system has
 * that: its ids rather than its names. test/apps/website/docs/ci-systems.test.ts exchanges a token of each.
 */
export interface CiSystem {
  readonly name: string;
  readonly issuer: string;
  readonly subject: string;
  readonly claims: Readonly<Record<string, string>>;
  /** What makes a token for the audience. */
  readonly madeBy: (audience: string) => string;
  /** Where the job finds it then. */
  readonly foundIn: string;
  readonly documentation: string;
}

export const CI_SYSTEMS: readonly CiSystem[] = [
  {
    name: 'GitHub Actions',
    issuer: 'https://token.actions.githubusercontent.com',
    // In repositories of 2026 ids stand behind the two names, by "@" or "-", so a rule leaves the names open.
    subject: 'repo:*/*:ref:refs/heads/main',
    claims: { repository_id: '456789', repository_owner_id: '123456' },
    madeBy: () => 'permissions: id-token: write',
    foundIn: 'the answer of ACTIONS_ID_TOKEN_REQUEST_URL',
    documentation: 'https://docs.github.com/en/actions/reference/security/oidc',
  },
  {
    name: 'GitLab CI',
    issuer: 'https://gitlab.com',
    subject: 'project_path:acme/site:ref_type:branch:ref:main',
    claims: { project_id: '456789', namespace_id: '123456' },
    madeBy: (audience) => `id_tokens: SERVICE_ID_TOKEN: aud: ${audience}`,
    foundIn: 'SERVICE_ID_TOKEN',
    documentation: 'https://docs.gitlab.com/ci/secrets/id_token_authentication/',
  },
  {
    name: 'CircleCI',
    issuer: 'https://oidc.circleci.com/org/ORGANIZATION_ID',
    // A build of a fork has the same project, and another origin.
    subject: 'org/ORGANIZATION_ID/project/PROJECT_ID/user/*/vcs-origin/github.com/acme/site/vcs-ref/refs/heads/main',
    claims: { 'oidc.circleci.com/project-id': 'PROJECT_ID' },
    madeBy: (audience) => `circleci run oidc get --claims '{"aud": "${audience}"}'`,
    foundIn: 'standard output',
    documentation: 'https://circleci.com/docs/guides/permissions-authentication/oidc-tokens-with-custom-claims/',
  },
  {
    name: 'Buildkite',
    issuer: 'https://agent.buildkite.com',
    // The step has the key "mirror": without one, nothing stands behind the last colon.
    subject: 'organization:acme:pipeline:site:ref:refs/heads/main:commit:*:step:mirror',
    claims: { organization_slug: 'acme', pipeline_slug: 'site' },
    madeBy: (audience) => `buildkite-agent oidc request-token --audience ${audience}`,
    foundIn: 'standard output',
    documentation: 'https://buildkite.com/docs/agent/cli/reference/oidc',
  },
  {
    name: 'Jenkins',
    issuer: 'https://jenkins.example/oidc',
    subject: 'https://jenkins.example/job/site/job/main/',
    claims: {},
    madeBy: (audience) => `a credential of the kind "OpenID Connect id token" with the audience ${audience}`,
    foundIn: 'the variable that withCredentials names',
    documentation: 'https://plugins.jenkins.io/oidc-provider/',
  },
  {
    name: 'HCP Terraform (Terraform Cloud)',
    issuer: 'https://app.terraform.io',
    subject: 'organization:acme:project:*:workspace:site:run_phase:apply',
    claims: { terraform_organization_id: 'org-123456', terraform_workspace_id: 'ws-456789' },
    madeBy: (audience) => `TFC_WORKLOAD_IDENTITY_AUDIENCE=${audience}`,
    foundIn: 'TFC_WORKLOAD_IDENTITY_TOKEN',
    documentation:
      'https://developer.hashicorp.com/terraform/cloud-docs/workspaces/dynamic-provider-credentials/workload-identity-tokens',
  },
];
