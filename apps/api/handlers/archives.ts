/**
 * Archives of a commit's files.
 *
 * Invariants: every byte sent counts against the account's transfer quota; git does not wait for a client that reads
 * too slowly.
 */
import type { z } from 'zod';
import { readArchive } from '../../../core/use-cases/reading/read-archive.ts';
import { attachment } from '../../front-door/disposition.ts';
import { metered } from '../metered.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { ARCHIVE_PARAMS } from '../schemas/archives.ts';

const ARCHIVE_NOTES =
  'An archive as git archive makes it: in one folder, `<repository>-<ref>`, without files that the attribute export-ignore names, and with the refs that files with export-subst name; the ETag of such an archive changes with the refs. The bytes sent count as transfer; the request is refused (403) while the transfer quota of the month is used up. An account has few at the same time (429), and so has the service (503); a client that hardly reads is disconnected.';

export const ARCHIVE_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'getArchive',
    costly: true,
    tag: 'Code',
    summary: 'Download the files of a commit',
    description: ARCHIVE_NOTES,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/archive/{archive}',
    grant: 'API_COMMITS_READ',
    schemas: { params: ARCHIVE_PARAMS },
    answers: {},
    bytes: [200],
    problems: [304, 422],
    handle: getArchive,
  }),
];

function getArchive(
  call: RepositoryCall,
  { params }: { readonly params: z.output<typeof ARCHIVE_PARAMS> },
): Promise<Outcome> {
  const { context, repository, principal } = call;
  const { ref, format } = params.archive;
  return metered(call, { key: null, withRanges: false }, async () => {
    const wanted = { account: principal.account, ref, format, signal: call.signal() };
    const archive = await readArchive(context, repository, wanted);
    if ('refused' in archive) return archive;
    const { tip, refsKey, chunks, isMade, close } = archive;
    const name = `${archive.name}.${format}`;
    const named = [name, ...(refsKey === null ? [] : [refsKey])].join('\n');
    // Weak: another version of git may compress the same files to other bytes.
    const etag = `W/"${tip}-${context.digest.sha256(named).slice(0, 16)}"`;
    const headers = {
      etag,
      'cache-control': 'private, no-cache',
      // Generators of clients know this type of bytes, and few know those of archives.
      'content-type': 'application/octet-stream',
      'content-disposition': attachment(name),
    };
    return { etag, headers, sizeBytes: null, chunks, isMade, close };
  });
}
