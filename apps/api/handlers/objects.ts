/** Blobs and trees by their ids. */
import type { z } from 'zod';
import { readBlob, readTree, type TreePage } from '../../../core/use-cases/reading/read-object.ts';
import { idNamed } from '../../../core/use-cases/reading/resolve-ref.ts';
import { blobJson, blobJsonChunks, entryJson } from '../contents-json.ts';
import { jsonBody, jsonOfBytes, rawBody } from '../file-bytes.ts';
import { wantsBytes } from '../http/accept.ts';
import { metered } from '../metered.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { pageOf } from '../schemas/common.ts';
import {
  BLOB,
  BLOB_PARAMS,
  BLOB_QUERY,
  OFFERED_BLOB_QUERY,
  TREE,
  TREE_PARAMS,
  TREE_QUERY,
} from '../schemas/objects.ts';

const REACHED = 'Found is what a current ref reaches. The bytes sent count as transfer.';

export const OBJECT_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'getBlob',
    tag: 'Git data',
    summary: 'Read a blob',
    description: `${REACHED} One larger than 64 MiB is refused (403). With \`raw=true\`, or an \`Accept\` that prefers \`application/octet-stream\`, the answer is the bytes, and ranges are honoured.`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/blobs/{blob}',
    grant: 'API_COMMITS_READ',
    schemas: { params: BLOB_PARAMS, query: BLOB_QUERY },
    offeredQuery: OFFERED_BLOB_QUERY,
    answers: { 200: BLOB },
    problems: [304],
    handle: getBlob,
  }),
  repositoryRoute({
    operationId: 'getTree',
    tag: 'Git data',
    summary: 'List a tree',
    description: `${REACHED} A recursive listing has at most 100,000 entries; folders below it are listed by their ids.`,
    method: 'GET',
    path: '/v1/repos/{username}/{name}/trees/{tree}',
    grant: 'API_COMMITS_READ',
    schemas: { params: TREE_PARAMS, query: TREE_QUERY },
    answers: { 200: TREE },
    problems: [304],
    handle: getTree,
  }),
];

async function getBlob(
  call: RepositoryCall,
  { params, query }: { readonly params: z.output<typeof BLOB_PARAMS>; readonly query: z.output<typeof BLOB_QUERY> },
): Promise<Outcome> {
  const { context, repository, request } = call;
  const id = idNamed(params.blob);
  if (id === null) return { refused: { code: 'object-not-found' } };
  const isRaw = wantsBytes(request.headers, query.raw);
  return metered(call, { key: `blob ${id} ${isRaw ? 'raw' : 'json'}`, withRanges: isRaw }, async () => {
    const blob = await readBlob(context, repository, { id, judgeStreamed: !isRaw });
    if ('refused' in blob) return blob;
    if (isRaw) return rawBody({ name: id, ...blob });
    return jsonOfBytes(
      blob.content,
      `"${id}-b1"`,
      (bytes) => blobJson(blob, bytes),
      (chunks) => blobJsonChunks(blob, chunks),
    );
  });
}

type TreeQuery = z.output<typeof TREE_QUERY>;

async function getTree(
  call: RepositoryCall,
  { params, query }: { readonly params: z.output<typeof TREE_PARAMS>; readonly query: TreeQuery },
): Promise<Outcome> {
  const { context, repository } = call;
  const id = idNamed(params.tree);
  if (id === null) return { refused: { code: 'object-not-found' } };
  const { page, limit, recursive } = query;
  const form = `${recursive ? 'below' : 'in'} ${page} ${limit}`;
  return metered(call, { key: `tree ${id} ${form}`, withRanges: false }, async () => {
    const wanted = { id, recursive, page: pageOf(query), signal: call.signal() };
    const release = recursive ? await context.largeListings.acquire(repository.accountId, wanted.signal) : null;
    try {
      const found = await readTree(context, repository, wanted);
      if ('refused' in found) return found;
      return jsonBody(treeJson(id, found, query), `"${id}-${form.replaceAll(' ', '-')}-t1"`);
    } finally {
      release?.();
    }
  });
}

function treeJson(sha: string, { items, total, hasMore }: TreePage, query: TreeQuery): z.output<typeof TREE> {
  const { page, limit } = query;
  return {
    sha,
    entries: items.map((entry) => entryJson(entry, entry.path)),
    pagination: { page, limit, total, has_more: hasMore },
  };
}
