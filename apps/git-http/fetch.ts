/**
 * POST git-upload-pack: the server answers ls-refs from memory, and runs native git for fetches that it authorised.
 *
 * Must stay true: every want is authorised against the current refs before upload-pack gets the request. An answer
 * that fails half way breaks the connection, so that no client takes a part for the whole.
 */
import { DEPTH_OF_ALL, type FetchRequest } from '../../core/git/wire/fetch-request.ts';
import { withoutEdges } from '../../core/git/history/hidden-edges.ts';
import { errorPacket } from '../../core/git/wire/pkt-line.ts';
import { parseRefName } from '../../core/git/ref-name.ts';
import { excerpt } from '../../core/git/wire/side-band.ts';
import { parseUploadPackRequest } from '../../core/git/wire/upload-pack-request.ts';
import { ANSWER_KEPT_BYTES_MAX, BODY_IDLE_MS, FETCH_REQUEST_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { ObjectReader } from '../../core/ports/object-database.ts';
import { readerOf } from '../../core/use-cases/accounts/principal.ts';
import { unauthorisedMentions, unauthorisedWants } from '../../core/use-cases/reading/authorise-wants.ts';
import { committedObjects } from '../../core/use-cases/reading/committed-objects.ts';
import { advertisedRefs } from './advertise.ts';
import { GitHttpError, NO_CACHE, sendBytes, write } from './answer.ts';
import type { GitRequest } from './git-request.ts';
import { openBody, readWhole } from './body.ts';

const RESULT_TYPE = 'application/x-git-upload-pack-result';

export async function serveUploadPack(git: GitRequest): Promise<void> {
  const { answers, repository, request, response, version, finished } = git;
  const body = openBody(request, { idleMs: BODY_IDLE_MS });
  const bytes = await readWhole(body.bytes, FETCH_REQUEST_BYTES_MAX);
  finished.receivedBytes = body.receivedBytes();
  const parsed = parseUploadPackRequest(bytes, version);
  if ('refused' in parsed) {
    sendBytes(response, RESULT_TYPE, errorPacket(parsed.detail));
    return;
  }
  switch (parsed.kind) {
    case 'probe':
      sendBytes(response, RESULT_TYPE, new Uint8Array());
      return;
    case 'ls-refs': {
      finished.operation = 'ls-refs';
      const answer = answers.lsRefs(repository, parsed.request);
      finished.sentBytes = answer.length;
      sendBytes(response, RESULT_TYPE, answer);
      return;
    }
    case 'fetch':
      finished.operation = 'fetch';
      await serveFetch(git, parsed.request, bytes);
  }
}

async function serveFetch(git: GitRequest, fetch: FetchRequest, body: Uint8Array): Promise<void> {
  const { context, repository, response } = git;
  await requireTransferQuota(git);
  const objects = committedObjects(repository.owned, repository.entity);
  const opened: { reader: ObjectReader | null } = { reader: null };
  const open = async (): Promise<ObjectReader> => {
    opened.reader ??= await context.objects.open(objects);
    return opened.reader;
  };
  try {
    const viewKey = `${repository.entity.revision} ${repository.defaultBranch}`;
    const { state } = repository.entity;
    const now = context.clock.now();
    const [denied] = await unauthorisedWants(state, fetch.wants, viewKey, now, open);
    const [unknown] = fetch.deepen?.kind === 'limits' ? fetch.deepen.not.filter((name) => !isOneRef(git, name)) : [];
    if (denied !== undefined || unknown !== undefined) {
      const reason =
        denied === undefined ? `deepen-not is not a ref: ${excerpt(unknown ?? '')}` : `not our ref ${denied}`;
      sendBytes(response, RESULT_TYPE, errorPacket(`upload-pack: ${reason}`));
      return;
    }
    const hidden = deepensToAll(fetch) ? await unauthorisedMentions(state, fetch.shallow, viewKey, now, open) : [];
    const key = hidden.length > 0 ? null : answerKey(git, fetch, viewKey);
    await stream(git, await open(), viewKey, withoutEdges(body, new Set(hidden)), key);
  } finally {
    opened.reader?.close();
  }
}

/**
 * Whether the client requests the whole history. upload-pack then sends the parents of every commit that the client
 * names as shallow, whether a ref reaches it or not. So the server removes the unreachable ones from the request
 * (core/git/history/hidden-edges.ts).
 */
function deepensToAll({ deepen }: FetchRequest): boolean {
  return deepen?.kind === 'depth' && deepen.commits === DEPTH_OF_ALL;
}

/**
 * Whether the name resolves to exactly one ref by the rules of gitrevisions(7): upload-pack exits on any other name.
 */
function isOneRef({ repository }: GitRequest, name: string): boolean {
  const { refs } = repository.entity.state;
  const exists = (text: string): boolean => {
    const ref = parseRefName(text);
    return typeof ref === 'string' && refs.has(ref);
  };
  const found = ['', 'refs/', 'refs/tags/', 'refs/heads/'].filter((folder) => exists(folder + name)).length;
  return found + (name === 'HEAD' && exists(`refs/heads/${repository.defaultBranch}`) ? 1 : 0) === 1;
}

/**
 * The cache key of the answer: everything git makes it from, and nothing about the caller. Null for a client that has
 * commits, since only requests without any recur, and for a repository too large to cache. `viewKey` stands for the
 * refs: they decide which tags are included and what `deepen-not` means.
 */
function answerKey({ context, repository }: GitRequest, fetch: FetchRequest, viewKey: string): string | null {
  if (fetch.haves.length > 0 || repository.entity.state.layersSizeBytes > ANSWER_KEPT_BYTES_MAX) return null;
  const { wants, shallow, ...rest } = fetch;
  return context.digest.sha256(JSON.stringify([viewKey, [...wants].sort(), [...shallow].sort(), rest]));
}

async function stream(
  git: GitRequest,
  reader: ObjectReader,
  viewKey: string,
  body: Uint8Array,
  key: string | null,
): Promise<void> {
  const { context, repository, principal, response, finished, signal } = git;
  const { head, refs } = advertisedRefs(repository);
  const view = { key: viewKey, head, refs };
  const answer = reader.uploadPack({ view, protocol: git.version, request: once(body), answerKey: key, signal });
  try {
    for await (const chunk of answer) {
      // The head is sent with the first bytes: a failure before them can still get a status.
      if (!response.headersSent) response.writeHead(200, { ...NO_CACHE, 'Content-Type': RESULT_TYPE });
      finished.sentBytes += chunk.length;
      if (!(await write(response, chunk))) return;
    }
    if (!response.headersSent) response.writeHead(200, { ...NO_CACHE, 'Content-Type': RESULT_TYPE });
    response.end();
  } finally {
    const sentBytes = finished.sentBytes;
    context.transfer.add({
      account: repository.accountId,
      reader: readerOf(principal),
      repository: repository.id,
      sentBytes,
    });
  }
}

async function requireTransferQuota({ context, repository }: GitRequest): Promise<void> {
  if (!(await context.transferBudget.hasRoom(repository.accountId, repository.account.plan))) {
    throw new GitHttpError(403, 'The transfer quota of this month is used up: it is reset next month');
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}
