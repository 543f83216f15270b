/**
 * Contents of a repository: the file, folder, link or submodule at a path of a commit, as JSON or as raw bytes.
 *
 * Invariants: a large file is sent in constant memory.
 */
import type { z } from 'zod';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { ContentsPath } from '../../../core/use-cases/reading/entry-at-path.ts';
import { type Place, readContents, readFile } from '../../../core/use-cases/reading/read-contents.ts';
import { contentsJson, fileJson, fileJsonChunks, pathText } from '../contents-json.ts';
import { jsonBody, jsonOfBytes, rawBody } from '../file-bytes.ts';
import { wantsBytes } from '../http/accept.ts';
import { parseContentsPath } from '../http/contents-path.ts';
import { metered } from '../metered.ts';
import type { Representation } from '../representation.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { pageOf } from '../schemas/common.ts';
import {
  CONTENTS,
  CONTENTS_PARAMS,
  CONTENTS_QUERY,
  OFFERED_CONTENTS_QUERY,
  RAW_CONTENTS_QUERY,
} from '../schemas/contents.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';

const CONTENTS_NOTES =
  'The bytes sent count as transfer. A file larger than 64 MiB is refused (403), and so is every request while the transfer quota of the month is used up. Names of files are bytes: percent-encode those that are not UTF-8. A path with a slash at its end names a folder. Symbolic links are shown, not followed.';
const RAW_NOTES =
  'With `raw=true`, or an `Accept` that prefers `application/octet-stream`, the answer is that of `getRawContents`.';

export const CONTENTS_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'getRootContents',
    tag: 'Code',
    summary: 'Read the root folder',
    description: `${CONTENTS_NOTES}\n\n${RAW_NOTES}`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/contents',
    grant: 'API_COMMITS_READ',
    schemas: { params: REPOSITORY_PARAMS, query: CONTENTS_QUERY },
    offeredQuery: OFFERED_CONTENTS_QUERY,
    answers: { 200: CONTENTS },
    problems: [304],
    handle: getContents,
  }),
  repositoryRoute({
    operationId: 'getContents',
    tag: 'Code',
    summary: 'Read a file or a folder',
    description: `${CONTENTS_NOTES}\n\n${RAW_NOTES}`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/contents/{path}',
    grant: 'API_COMMITS_READ',
    schemas: { params: CONTENTS_PARAMS, query: CONTENTS_QUERY },
    offeredQuery: OFFERED_CONTENTS_QUERY,
    answers: { 200: CONTENTS },
    problems: [304],
    handle: getContents,
  }),
  repositoryRoute({
    operationId: 'getRawContents',
    tag: 'Code',
    summary: 'Read the bytes of a file',
    description: `${CONTENTS_NOTES} Ranges are honoured.`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/raw/{path}',
    grant: 'API_COMMITS_READ',
    schemas: { params: CONTENTS_PARAMS, query: RAW_CONTENTS_QUERY },
    answers: {},
    bytes: [200, 206],
    problems: [304, 416],
    handle: (call, { query }) => getContents(call, { query: { ...query, page: 0, limit: 1, raw: 'true' } }),
  }),
];

type Query = z.output<typeof CONTENTS_QUERY>;
type Refused = { readonly refused: Refusal };

async function getContents(call: RepositoryCall, { query }: { readonly query: Query }): Promise<Outcome> {
  const isRaw = wantsBytes(call.request.headers, query.raw);
  const path = parseContentsPath(call.target);
  const key = path === null ? null : keyOf(query, isRaw, path);
  return metered(call, { key, withRanges: isRaw }, () => represent(call, query, isRaw, path));
}

function keyOf({ ref, page, limit }: Query, isRaw: boolean, { names, folder }: ContentsPath): string {
  const path = names.map((name) => Buffer.from(name).toString('latin1')).join('/');
  // No path holds NUL, so the last NUL always separates the ref from the path.
  const requestedRef = ref === undefined ? 'default' : `ref ${ref}`;
  const form = `${isRaw ? 'raw' : `json ${page} ${limit}`}${folder ? ' folder' : ''}`;
  return `${form} ${requestedRef}\0${path}`;
}

/** Reads the requested contents. A streamed representation keeps its objects open until it is closed. */
async function represent(
  { context, repository }: RepositoryCall,
  query: Query,
  isRaw: boolean,
  path: ContentsPath | null,
): Promise<Representation | Refused> {
  const ref = query.ref ?? null;
  if (isRaw) {
    const file = await readFile(context, repository, { ref, path });
    return 'refused' in file ? file : rawBody({ ...file, name: nameOf(file.place) });
  }
  const contents = await readContents(context, repository, { ref, path, entries: pageOf(query), judgeStreamed: true });
  if ('refused' in contents) return contents;
  const { id, place } = contents;
  const tag = context.digest.sha256(`${place.commit} ${place.ref}`).slice(0, 16);
  const etag = `"${id}-${tag}-${query.page}-${query.limit}-j3"`;
  if (contents.type !== 'file') return jsonBody(contentsJson(contents, query), etag);
  return jsonOfBytes(
    contents.content,
    etag,
    (bytes) => fileJson(contents, bytes),
    (chunks) => fileJsonChunks(contents, chunks),
  );
}

/** The blob of a tag has no path, and is named like the tag. */
function nameOf(place: Place): string {
  const path = pathText(place) || place.ref;
  return path.slice(path.lastIndexOf('/') + 1);
}
