/**
 * The rules of the guide to CI jobs, each with tokens that have the claims of the system's documentation:
 * apps/website/docs/ci-systems.ts has the addresses. Beside them: GitHub's changelog of 2026-04-23, "Immutable subject
 * claims for GitHub Actions OIDC tokens", and github/docs, pull request 45221, for its three forms of a subject;
 * circleci/circleci-docs, openid-connect-tokens.adoc; buildkite/docs, cli_oidc.md, "Example token contents";
 * jenkinsci/oidc-provider-plugin, README.md; gitlab-org/gitlab, merge request 116867, for a whole payload of GitLab.
 * CircleCI, Buildkite and Jenkins name no `jti`, and their tokens have none here.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, describe, test } from 'vitest';
import { CI_SYSTEMS } from '../../../../apps/website/docs/ci-systems.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { type ApiFixture, createApiFixture } from '../../../support/api-fixture.ts';
import { cleanUp, suiteEnding } from '../../../support/cleanup.ts';
import { type Claims, createIssuerNetwork, startIssuer, type TestIssuer } from '../../../support/identity-issuer.ts';

const COMMIT = '9f3182061f1e2cca4702c368cbc039b7dc9d4485';

interface Jobs {
  /** The claims of a job that the rule is for. */
  readonly own: Claims;
  /** What other jobs of the same system have instead. */
  readonly others: readonly Claims[];
}

const github = (owner: string, name: string, ref = 'refs/heads/main'): string => `repo:${owner}/${name}:ref:${ref}`;
const circle = (origin: string, ref = 'refs/heads/main'): string =>
  `org/ORGANIZATION_ID/project/PROJECT_ID/user/${randomUUID()}/vcs-origin/${origin}/vcs-ref/${ref}`;
const buildkite = (pipeline: string, branch: string, step = 'mirror'): string =>
  `organization:acme:pipeline:${pipeline}:ref:refs/heads/${branch}:commit:${COMMIT}:step:${step}`;
const terraform = (workspace: string, phase: string): string =>
  `organization:acme:project:Default Project:workspace:${workspace}:run_phase:${phase}`;

const JOBS: Readonly<Record<string, Jobs>> = {
  'GitHub Actions': {
    own: {
      sub: github('acme', 'site'),
      ...{ ref: 'refs/heads/main', repository: 'acme/site', repository_owner: 'acme', run_attempt: '1' },
      ...{ repository_id: '456789', repository_owner_id: '123456', event_name: 'push' },
    },
    others: [
      { sub: github('acme', 'site', 'refs/heads/other') },
      { sub: 'repo:acme/site:pull_request' },
      { sub: github('acme-evil', 'site'), repository_id: '1', repository_owner_id: '2' },
      { sub: github('acme@2', 'site@1'), repository_id: '1', repository_owner_id: '2' },
      { sub: github('acme@123456', 'other@1'), repository_id: '1' },
      { repository_owner_id: '2' },
      { sub: github('', 'site') },
    ],
  },
  'GitLab CI': {
    own: {
      sub: 'project_path:acme/site:ref_type:branch:ref:main',
      ...{ namespace_id: '123456', namespace_path: 'acme', project_id: '456789', project_path: 'acme/site' },
      ...{ ref: 'main', ref_type: 'branch', ref_path: 'refs/heads/main', ref_protected: 'true', job_id: '302' },
    },
    others: [
      { sub: 'project_path:acme/site:ref_type:tag:ref:main', ref_type: 'tag' },
      { sub: 'project_path:evil/site:ref_type:branch:ref:main', project_id: '1', namespace_id: '2' },
      { project_id: '1' },
    ],
  },
  CircleCI: {
    own: {
      ...{ jti: undefined, sub: circle('github.com/acme/site'), 'oidc.circleci.com/project-id': 'PROJECT_ID' },
      ...{ 'oidc.circleci.com/vcs-origin': 'github.com/acme/site', 'oidc.circleci.com/vcs-ref': 'refs/heads/main' },
      ...{ 'oidc.circleci.com/context-ids': [randomUUID()], 'oidc.circleci.com/ssh-rerun': false },
    },
    others: [
      { sub: circle('github.com/evil/site') },
      { sub: circle('github.com/acme/site', 'refs/heads/other') },
      { 'oidc.circleci.com/project-id': randomUUID() },
    ],
  },
  Buildkite: {
    own: {
      ...{ jti: undefined, sub: buildkite('site', 'main'), organization_slug: 'acme', pipeline_slug: 'site' },
      ...{ build_number: 1, build_branch: 'main', build_commit: COMMIT, step_key: 'mirror', job_id: randomUUID() },
    },
    others: [
      { sub: buildkite('site', 'other') },
      { sub: buildkite('other', 'main'), pipeline_slug: 'other' },
      { sub: buildkite('site', 'main', ''), step_key: null },
    ],
  },
  Jenkins: {
    own: { jti: undefined, sub: 'https://jenkins.example/job/site/job/main/', build_number: 7 },
    others: [
      { sub: 'https://jenkins.example/job/site/job/other/' },
      { sub: 'https://jenkins.example/job/evil/job/site/job/main/' },
    ],
  },
  'HCP Terraform (Terraform Cloud)': {
    own: {
      ...{ sub: terraform('site', 'apply'), terraform_run_phase: 'apply', terraform_workspace_id: 'ws-456789' },
      ...{ terraform_organization_id: 'org-123456', terraform_organization_name: 'acme', terraform_run_id: 'run-1' },
    },
    others: [
      { sub: terraform('site', 'plan'), terraform_run_phase: 'plan' },
      { sub: terraform('other', 'apply'), terraform_workspace_id: 'ws-1' },
      { terraform_organization_id: 'org-1' },
    ],
  },
};

describe('A rule of the guide to CI jobs', () => {
  const ending = suiteEnding();
  const network = createIssuerNetwork();
  let fixture: ApiFixture;
  let ada: AccountId;
  let issuer: TestIssuer;

  beforeAll(async () => {
    fixture = await createApiFixture({ outgoing: network.outgoing });
    cleanUp(ending, () => fixture.close());
    ada = await fixture.account('ada');
  });
  beforeEach(async (context) => {
    fixture.clock.advance(60_000);
    const audience = `${fixture.context.addresses().webUrl}/ada`;
    issuer = await startIssuer(context, network, { clock: fixture.clock, audience });
  });

  const exchange = async (claims: Claims): Promise<number> => {
    const body = { id_token: await issuer.token(claims) };
    return (await fixture.request('POST', '/v1/oidc/token', null, { body })).statusCode;
  };

  test.each(CI_SYSTEMS)('for $name lets in the job that it is for, and no other', async ({ name, subject, claims }) => {
    const jobs = JOBS[name];
    assert.ok(jobs !== undefined);
    // The issuer is one on loopback, since that of the guide signs no token for a test.
    await fixture.trustRule(ada, { issuer: issuer.url, subject, claims });
    assert.equal(await exchange(jobs.own), 200);
    for (const other of jobs.others) {
      assert.equal(await exchange({ ...jobs.own, ...other }), 401, JSON.stringify(other));
    }
  });

  test('for GitHub Actions holds for subjects with and without ids, by either delimiter', async () => {
    const [system] = CI_SYSTEMS;
    const own = JOBS['GitHub Actions']?.own;
    assert.ok(system !== undefined && own !== undefined);
    await fixture.trustRule(ada, { issuer: issuer.url, subject: system.subject, claims: system.claims });
    for (const [owner, repository] of [
      ['acme', 'site'],
      ['acme@123456', 'site@456789'],
      ['acme-123456', 'site-456789'],
      ['renamed@123456', 'renamed@456789'],
    ] as const) {
      assert.equal(await exchange({ ...own, sub: github(owner, repository) }), 200, owner);
    }
  });
});
