/**
 * Contents of a repository: what lies at a path of a commit, as JSON or as the bytes themselves.
 *
 * Must stay true: every byte sent is counted against the account's transfer; a large file goes through in
 * constant memory; what a repository holds never reaches a browser as something it would run.
 */
import type { z } from 'zod';
import { CONTENTS_BUFFERED_BYTES_MAX } from '../../../core/kernel/limits.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { ObjectReader } from '../../../core/ports/object-database.ts';
import { committedObjects } from '../../../core/use-cases/pushing/push-refs.ts';
import { type ContentsPath, type Located, locate } from '../../../core/use-cases/reading/locate.ts';
import { resolveRef } from '../../../core/use-cases/reading/resolve-ref.ts';
import {
  fileJson,
  fileJsonChunks,
  folderJson,
  pathText,
  type Place,
  readBytes,
  submoduleJson,
  symlinkJson,
} from '../contents-json.ts';
import { prefersBytes } from '../http/accept.ts';
import { type Headers, JSON_TYPE } from '../http/answer.ts';
import { parseContentsPath } from '../http/contents-path.ts';
import { attachment } from '../http/disposition.ts';
import { answerWith, type Representation } from '../representation.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import type { CONTENTS_QUERY } from '../schemas/contents.ts';

type Query = z.output<typeof CONTENTS_QUERY>;
type Refused = { readonly refused: Refusal };

export async function getContents(call: RepositoryCall, { query }: { readonly query: Query }): Promise<Outcome> {
  const { context, repository, request, bearer } = call;
  if (!(await context.transferBudget.hasRoom(repository.accountId, repository.account))) {
    return { refused: { code: 'transfer-quota-reached' } };
  }
  const isRaw = query.raw === undefined ? prefersBytes(request.headers.accept) : query.raw === 'true';
  const path = parseContentsPath(call.target);
  const key = path === null ? null : keyOf(call, query, isRaw, path);
  const known = key === null ? undefined : context.bodies.get(key);
  const body = known ?? (await represent(call, query, isRaw, path));
  if ('refused' in body) return body;
  if (known === undefined && key !== null && 'bytes' in body) context.bodies.set(key, body);
  return answerWith(request, body, {
    withRanges: isRaw,
    onSent: (sentBytes) => {
      const read = { account: repository.accountId, token: bearer.tokenId, repository: repository.id, sentBytes };
      context.transfer.add(read);
    },
  });
}

function keyOf(
  { repository }: RepositoryCall,
  { ref }: Query,
  isRaw: boolean,
  { names, folder }: ContentsPath,
): string {
  const path = names.map((name) => Buffer.from(name).toString('latin1')).join('/');
  // No name of a path holds a NUL, so it parts what follows the ref without doubt.
  const asked = ref === undefined ? 'default' : `ref ${ref}`;
  const form = `${isRaw ? 'raw' : 'json'}${folder ? ' folder' : ''}`;
  return `contents ${repository.id} ${repository.entity.revision} ${form} ${asked}\0${path}`;
}

/** Reads what the request names. A representation that is streamed keeps the reader until it is closed. */
async function represent(
  { context, repository }: RepositoryCall,
  { ref }: Query,
  isRaw: boolean,
  path: ContentsPath | null,
): Promise<Representation | Refused> {
  const reader = await context.objects.open(committedObjects(repository.id, repository.entity));
  let isStreamed = false;
  try {
    const resolved = await resolveRef(repository, reader, ref ?? null);
    if ('refused' in resolved) return resolved;
    if (path === null) return { refused: { code: 'path-not-found' } };
    const located = await locate(reader, resolved.commit, path);
    if ('refused' in located) return located;
    const place = { path: pathText(path), ref: resolved.name, commit: resolved.commit.id };
    const tag = context.digest.sha256(`${place.commit} ${place.ref}`).slice(0, 16);
    const body = isRaw
      ? await rawBody(reader, located, place)
      : await jsonBody(reader, located, place, `"${located.id}-${tag}-j1"`);
    isStreamed = 'close' in body;
    return body;
  } finally {
    if (!isStreamed) reader.close();
  }
}

async function rawBody(reader: ObjectReader, located: Located, { path }: Place): Promise<Representation | Refused> {
  if (located.type === 'dir' || located.type === 'submodule') return { refused: { code: 'path-not-a-file' } };
  const { id, sizeBytes } = located;
  const etag = `"${id}-r1"`;
  const headers: Headers = {
    ...commonHeaders(etag),
    'content-type': 'application/octet-stream',
    'content-disposition': attachment(path.slice(path.lastIndexOf('/') + 1)),
    // Should a browser show it all the same, nothing in it runs.
    'content-security-policy': "default-src 'none'; sandbox",
    'accept-ranges': 'bytes',
  };
  if (sizeBytes <= CONTENTS_BUFFERED_BYTES_MAX) {
    return { etag, headers, bytes: await readBytes(reader, id, sizeBytes) };
  }
  const chunks = (range: { readonly start: number; readonly end: number } | null) =>
    range === null ? reader.blob(id) : reader.blob(id, range);
  return { etag, headers, sizeBytes, chunks, close: () => reader.close() };
}

async function jsonBody(reader: ObjectReader, located: Located, place: Place, etag: string): Promise<Representation> {
  const headers: Headers = { ...commonHeaders(etag), 'content-type': JSON_TYPE };
  if (located.type === 'file' && located.sizeBytes > CONTENTS_BUFFERED_BYTES_MAX) {
    const chunks = await fileJsonChunks(reader, located, place);
    return { etag, headers, sizeBytes: null, chunks, close: () => reader.close() };
  }
  const json = await smallJson(reader, located, place);
  return { etag, headers, bytes: Buffer.from(JSON.stringify(json), 'utf8') };
}

function smallJson(reader: ObjectReader, located: Located, place: Place): object | Promise<object> {
  switch (located.type) {
    case 'dir':
      return folderJson(reader, located, place);
    case 'submodule':
      return submoduleJson(located, place);
    case 'symlink':
      return symlinkJson(reader, located, place);
    case 'file':
      return fileJson(reader, located, place);
  }
}

/** Caches may keep it for their user, must ask each time, and keep JSON and bytes apart. */
function commonHeaders(etag: string): Headers {
  return { etag, 'cache-control': 'private, no-cache', vary: 'accept' };
}
