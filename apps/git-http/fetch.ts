/**
 * POST git-upload-pack: the server answers ls-refs from memory, and fetches with what native git makes.
 *
 * Invariants: upload-pack gets a request only after core/use-cases/reading/open-fetch.ts opened it. An answer that
 * fails half way breaks the connection, so that no client takes a part for the whole.
 */
import { withoutEdges } from '../../core/git/history/hidden-edges.ts';
import type { FetchRequest } from '../../core/git/wire/fetch-request.ts';
import { createPacketFraming } from '../../core/git/wire/packet-framing.ts';
import { errorPacket } from '../../core/git/wire/pkt-line.ts';
import { excerpt } from '../../core/git/wire/safe-line.ts';
import { BODY_IDLE_MS, FETCH_REQUEST_BYTES_MAX, REQUEST_POINTS } from '../../core/kernel/limits.ts';
import { ReaderTooSlow } from '../../core/kernel/reader-too-slow.ts';
import { type FetchDenial, type OpenFetch, openFetch } from '../../core/use-cases/reading/open-fetch.ts';
import { logFault } from '../front-door/fault-log.ts';
import { countRefusedRead } from '../front-door/refused-reads.ts';
import { bucketOutageLine } from '../front-door/texts/bucket-outages.ts';
import { NO_ROOM_FOR_READER, rateRefusalText } from '../front-door/texts/denials.ts';
import { countSent } from '../front-door/transfer-budget.ts';
import { sendBytes, sendShared, write, writeHead, written } from './answer.ts';
import type { GitRequest } from './git-request.ts';
import { sendRefs } from './ref-answer.ts';
import { readBody } from './whole-body.ts';

/** The time from the end of a fetch request's head to the end of its body. */
export const FETCH_BODY_SPAN_MS = 60_000;

const RESULT_TYPE = 'application/x-git-upload-pack-result';
const RESULT_HEAD = ['Content-Type', RESULT_TYPE];

export async function serveUploadPack(git: GitRequest): Promise<void> {
  const held = git.context.bodyBudget.open({ account: git.principal.account });
  try {
    const { bytes, receivedBytes } = await readBody(git.request, {
      bytesMax: FETCH_REQUEST_BYTES_MAX,
      spanMs: FETCH_BODY_SPAN_MS,
      idleMs: BODY_IDLE_MS,
      held,
      isWanted: createPacketFraming(),
    });
    git.finished.receivedBytes = receivedBytes;
    // What follows a malformed packet is not read.
    if (!git.request.complete) git.response.setHeader('Connection', 'close');
    await answer(git, bytes);
  } finally {
    held.release();
  }
}

async function answer(git: GitRequest, bytes: Buffer): Promise<void> {
  const { answers, context, principal, repository, requests, version, finished } = git;
  const parsing = requests.parse(bytes, version, context.clock.nextTurn);
  const parsed = parsing instanceof Promise ? await parsing : parsing;
  if ('refused' in parsed) {
    sendBytes(git, RESULT_TYPE, errorPacket(parsed.detail));
    return;
  }
  switch (parsed.kind) {
    case 'probe':
      sendBytes(git, RESULT_TYPE, new Uint8Array());
      return;
    case 'ls-refs': {
      finished.operation = 'ls-refs';
      await sendRefs(git, RESULT_TYPE, answers.lsRefs(repository, parsed.request));
      return;
    }
    case 'fetch': {
      finished.operation = 'fetch';
      const refusal = context.callers.charge(principal, REQUEST_POINTS.fetch);
      // Git would show nothing but the status of a refused POST.
      if (refusal !== null) {
        countRefusedRead(context, principal, 'rate-exceeded');
        sendBytes(git, RESULT_TYPE, errorPacket(rateRefusalText(refusal)));
        return;
      }
      await reportingEnds(git, () => serveFetch(git, parsed.request, bytes));
    }
  }
}

/**
 * Git would show nothing but the status of a refused POST, so an error packet says that the bucket failed, or that
 * other clients read too slowly. The latter is no fault of the service, so it is not logged.
 */
async function reportingEnds(git: GitRequest, serve: () => Promise<void>): Promise<void> {
  const { context, repository, requestId, response, finished } = git;
  try {
    await serve();
  } catch (error) {
    if (response.headersSent) throw error;
    if (error instanceof ReaderTooSlow) {
      sendBytes(git, RESULT_TYPE, errorPacket(NO_ROOM_FOR_READER.text));
      return;
    }
    const line = bucketOutageLine(repository, error);
    if (line === null) throw error;
    logFault(context, error, { requestId, operation: finished.operation, status: 503 });
    sendBytes(git, RESULT_TYPE, errorPacket(line));
  }
}

async function serveFetch(git: GitRequest, request: FetchRequest, body: Uint8Array): Promise<void> {
  const { context, repository } = git;
  const opened = await openFetch(context, repository, request, context.clock.now());
  if ('refused' in opened) {
    const { code } = opened.refused;
    if (code === 'transfer-quota-reached') countRefusedRead(context, git.principal, code);
    // Git shows nothing of a status but its number to a client that has sent its wants.
    sendBytes(git, RESULT_TYPE, errorPacket(refusalText(opened.refused)));
    return;
  }
  context.warmClones.asked({ repository, fetch: request, body });
  if ('held' in opened) {
    try {
      await sendHeld(git, opened.held.bytes);
    } finally {
      opened.held.release();
    }
    return;
  }
  try {
    await stream(git, opened, await withoutEdges(body, opened.hiddenEdges, context.clock.nextTurn));
  } finally {
    opened.close();
  }
}

/**
 * Why a fetch is refused, in the words of git's upload-pack where it knows the refusal. Git has one text for both kinds
 * of `deepen-not`.
 */
function refusalText(denial: FetchDenial): string {
  switch (denial.code) {
    case 'transfer-quota-reached':
      return 'the transfer quota of this month is used up: it is reset next month';
    case 'want-not-reachable':
      return `upload-pack: not our ref ${denial.id}`;
    case 'deepen-not-unresolved':
      return `deepen-not is not a ref: ${excerpt(denial.name)}`;
    case 'deepen-not-ambiguous':
      return `ambiguous deepen-not: ${excerpt(denial.name)}`;
  }
}

async function stream(git: GitRequest, { reader, view, answerKey, clone }: OpenFetch, body: Uint8Array): Promise<void> {
  const { context, repository, principal, request, response, finished, signal } = git;
  const address = context.clientAddress(request);
  // What a clone gets may lie in a buffer that is used again for what follows.
  const mayOverwrite = clone !== null;
  const send = mayOverwrite ? written : write;
  const sent = { view, protocol: git.version, request: once(body), answerKey, clone, mayOverwrite, signal };
  try {
    for await (const chunk of reader.uploadPack(sent)) {
      // The head is sent with the first bytes: a failure before them can still get a status.
      if (!response.headersSent) writeHead(git, 200, RESULT_HEAD);
      finished.sentBytes += chunk.length;
      if (!(await send(response, chunk))) return;
    }
    if (!response.headersSent) writeHead(git, 200, RESULT_HEAD);
    response.end();
  } finally {
    countSent(context, repository, { principal, address, sentBytes: finished.sentBytes });
  }
}

async function sendHeld(git: GitRequest, bytes: Uint8Array): Promise<void> {
  const { context, repository, principal, request, finished } = git;
  const address = context.clientAddress(request);
  try {
    await sendShared(git, RESULT_TYPE, bytes, (sentBytes) => {
      finished.sentBytes += sentBytes;
    });
  } finally {
    countSent(context, repository, { principal, address, sentBytes: finished.sentBytes });
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield bytes;
}
