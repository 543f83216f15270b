/**
 * What a commit changed as text, which git reads again.
 *
 * Invariants: every byte sent counts against the account's transfer quota.
 */
import type { z } from 'zod';
import type { CommitTextForm } from '../../../core/ports/object-database.ts';
import { readCommitText } from '../../../core/use-cases/reading/read-commit-text.ts';
import { metered } from '../metered.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { COMMIT_PARAMS } from '../schemas/commits.ts';

const NOTES = 'The bytes sent count as transfer. They need not be UTF-8: lines are as the files have them.';

export const COMMIT_TEXT_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'getCommitDiff',
    costly: true,
    tag: 'Code',
    summary: 'Read what a commit changed as a diff',
    description: `What differs from the first parent, or from nothing, as \`git apply\` takes it; empty if no file differs. ${NOTES}`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/commits/{hexsha}.diff',
    grant: 'API_COMMITS_READ',
    schemas: { params: COMMIT_PARAMS },
    answers: {},
    text: 'text/plain',
    problems: [304, 422],
    handle: (call, input) => getText(call, input, 'diff'),
  }),
  repositoryRoute({
    operationId: 'getCommitPatch',
    costly: true,
    tag: 'Code',
    summary: 'Read a commit as a mail',
    description: `As \`git format-patch\` writes it and \`git am\` takes it. A merge and a commit that changed no file have none (422). ${NOTES}`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/commits/{hexsha}.patch',
    grant: 'API_COMMITS_READ',
    schemas: { params: COMMIT_PARAMS },
    answers: {},
    text: 'text/plain',
    problems: [304, 422],
    handle: (call, input) => getText(call, input, 'patch'),
  }),
];

function getText(
  call: RepositoryCall,
  { params }: { readonly params: z.output<typeof COMMIT_PARAMS> },
  form: CommitTextForm,
): Promise<Outcome> {
  const { context, repository } = call;
  return metered(call, { key: null, withRanges: false }, async () => {
    const text = await readCommitText(context, repository, { id: params.hexsha, form, signal: call.signal() });
    if ('refused' in text) return text;
    const { commit, chunks, isMade, close } = text;
    // Weak: another version of git may write the same change in other words.
    const etag = `W/"${commit}-${form}"`;
    const headers = { etag, 'cache-control': 'private, no-cache', 'content-type': 'text/plain; charset=utf-8' };
    return { etag, headers, sizeBytes: null, chunks, isMade, close };
  });
}
