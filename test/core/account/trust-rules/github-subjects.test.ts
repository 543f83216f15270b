/**
 * Subjects of GitHub's jobs, in the forms of "Immutable subject claims for GitHub Actions OIDC tokens" (GitHub's
 * changelog, 2026-04-23: "-") and of github/docs, pull request 45221 ("@").
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { differsByIdsAlone } from '../../../../core/account/trust-rules/github-subjects.ts';

const NAMES = 'repo:octocat/my-repo:ref:refs/heads/main';

test('Subjects of GitHub differ by their ids alone if one of the two has them, by either delimiter', () => {
  for (const [pattern, subject] of [
    [NAMES, 'repo:octocat@123456/my-repo@456789:ref:refs/heads/main'],
    [NAMES, 'repo:octocat-123456/my-repo-456789:ref:refs/heads/main'],
    ['repo:octocat/*:ref:refs/heads/main', 'repo:octocat@123456/my-repo@456789:ref:refs/heads/main'],
    ['repo:octocat/my-repo', 'repo:octocat@123456/my-repo@456789'],
    ['repo:octocat/my-repo:environment:Production', 'repo:octocat@1/my-repo@2:environment:Production'],
    ['repo:octocat@123456/my-repo@456789:ref:refs/heads/main', NAMES],
  ] as const) {
    assert.ok(differsByIdsAlone(pattern, subject), `${pattern} ${subject}`);
  }
});

// The attack: a recycled name, whose owner hopes that the rule's owner takes the refusal for a new form.
test('Subjects of GitHub differ by more if a name, the branch or an id is another', () => {
  for (const [pattern, subject] of [
    [NAMES, NAMES],
    [NAMES, 'repo:evil@123456/my-repo@456789:ref:refs/heads/main'],
    [NAMES, 'repo:octocat@123456/my-repo@456789:ref:refs/heads/other'],
    [NAMES, 'repo:octocat@123456/my-repo@456789:pull_request'],
    [NAMES, 'repo:octocat@123456/my-repo:ref:refs/heads/main'],
    [NAMES, 'repo:octocat@x/my-repo@456789:ref:refs/heads/main'],
    ['repo:octocat@1/my-repo@2:ref:refs/heads/main', 'repo:octocat@3/my-repo@2:ref:refs/heads/main'],
    ['project_path:octocat/my-repo', 'project_path:octocat@1/my-repo@2'],
  ] as const) {
    assert.ok(!differsByIdsAlone(pattern, subject), `${pattern} ${subject}`);
  }
});
