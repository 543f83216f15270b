/**
 * Contents of a repository: the file, folder, link or submodule at a path of a commit, as JSON or as raw bytes.
 *
 * Invariants: every byte sent counts against the account's transfer quota. A large file is sent in constant memory.
 * No browser runs content of a repository.
 */
import type { z } from 'zod';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { ContentsPath } from '../../../core/use-cases/reading/entry-at-path.ts';
import { type Contents, type RawFile, readContents, readFile } from '../../../core/use-cases/reading/read-contents.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { attachment } from '../../front-door/disposition.ts';
import { countSent } from '../../front-door/transfer-budget.ts';
import { bufferOf, contentsJson, fileJson, fileJsonChunks, pathText } from '../contents-json.ts';
import { prefersBytes } from '../http/accept.ts';
import { type Headers, JSON_TYPE } from '../http/answer.ts';
import { VARYING } from '../http/compression.ts';
import { parseContentsPath } from '../http/contents-path.ts';
import { answerWith, type Representation } from '../representation.ts';
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
  const { context, repository, request, principal } = call;
  if (!(await context.transferBudget.hasRoom(repository.accountId, repository.account.plan))) {
    return { refused: { code: 'transfer-quota-reached' } };
  }
  const isRaw = query.raw === undefined ? prefersBytes(request.headers.accept) : query.raw === 'true';
  const path = parseContentsPath(call.target);
  const key = path === null ? null : keyOf(call, query, isRaw, path);
  const known = key === null ? undefined : context.bodies.get(key);
  const made = known ?? (await represent(call, query, isRaw, path));
  if ('refused' in made) return made;
  const body = known === undefined && key !== null && 'bytes' in made ? context.bodies.keep(key, made) : made;
  const address = context.clientAddress(request);
  return answerWith(request, body, {
    withRanges: isRaw,
    onSent: (sentBytes) => countSent(context, repository, { principal, address, sentBytes }),
  });
}

function keyOf(
  { repository }: RepositoryCall,
  { ref, page, limit }: Query,
  isRaw: boolean,
  { names, folder }: ContentsPath,
): string {
  const path = names.map((name) => Buffer.from(name).toString('latin1')).join('/');
  // No path holds NUL, so the last NUL always separates the ref from the path.
  const requestedRef = ref === undefined ? 'default' : `ref ${ref}`;
  const form = `${isRaw ? 'raw' : `json ${page} ${limit}`}${folder ? ' folder' : ''}`;
  return `contents ${versionOf(repository)} ${form} ${requestedRef}\0${path}`;
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
    return 'refused' in file ? file : rawBody(file);
  }
  const contents = await readContents(context, repository, { ref, path, entries: pageOf(query), judgeStreamed: true });
  if ('refused' in contents) return contents;
  const { id, place } = contents;
  const tag = context.digest.sha256(`${place.commit} ${place.ref}`).slice(0, 16);
  return jsonBody(contents, query, `"${id}-${tag}-${query.page}-${query.limit}-j3"`);
}

function rawBody({ place, id, sizeBytes, content }: RawFile): Representation {
  const etag = `"${id}-r1"`;
  // The blob of a tag has no path, and is named like the tag.
  const path = pathText(place) || place.ref;
  const headers: Headers = {
    ...commonHeaders(etag),
    'content-type': 'application/octet-stream',
    'content-disposition': attachment(path.slice(path.lastIndexOf('/') + 1)),
    // If a browser shows the file despite its type and disposition, nothing in it runs.
    'content-security-policy': "default-src 'none'; sandbox",
    'accept-ranges': 'bytes',
  };
  if (content.kind === 'held') return { etag, headers, bytes: bufferOf(content.bytes) };
  const { chunks, close } = content;
  return { etag, headers, sizeBytes, chunks, close };
}

function jsonBody(contents: Contents, page: Query, etag: string): Representation {
  const common = commonHeaders(etag);
  const headers: Headers = { ...common, 'content-type': JSON_TYPE, vary: `accept, ${VARYING}` };
  if (contents.type !== 'file') return { etag, headers, bytes: encoded(contentsJson(contents, page)) };
  const { content } = contents;
  if (content.kind === 'held') return { etag, headers, bytes: encoded(fileJson(contents, content.bytes)) };
  const { chunks, close } = content;
  return { etag, headers, sizeBytes: null, chunks: () => fileJsonChunks(contents, chunks(null)), close };
}

function encoded(json: object): Buffer {
  return Buffer.from(JSON.stringify(json), 'utf8');
}

/** Private caches may store the answer, must revalidate it at every use, and store JSON and raw bytes separately. */
function commonHeaders(etag: string): Headers {
  return { etag, 'cache-control': 'private, no-cache', vary: 'accept' };
}
