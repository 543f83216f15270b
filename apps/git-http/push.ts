/**
 * POST git-receive-pack: reads the command list, runs the use case, and reports in the form that the client chose.
 *
 * Invariants: an `ok` line is sent only after the append that commits it. A client that reads the answer late, or
 * never, changes nothing. The server sends a refusal after it has read the body, or ends the connection behind it:
 * else git shows no reason while it cannot send its whole body. The commands are held within the memory for bodies.
 * Of a push that is refused as a whole only the report is, which names them in fewer bytes, while its rest is read.
 */
import {
  type CommandList,
  type CommandListRefusal,
  type CutCode,
  readCommandList,
} from '../../core/git/wire/command-list.ts';
import type { ProtocolRefusal } from '../../core/git/wire/pkt-line.ts';
import { pushAnswer, pushRefusal, type RefReport } from '../../core/git/wire/report-status.ts';
import { fatalPackets, KEEP_ALIVE_PACKET } from '../../core/git/wire/side-band.ts';
import { BODY_IDLE_MS, REFUSED_BODY_DRAIN_BYTES_MAX } from '../../core/kernel/limits.ts';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { type PushOutcome, pushRefs } from '../../core/use-cases/pushing/push-refs.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import { originOf } from '../front-door/admission.ts';
import { refChangesOf } from '../front-door/callers.ts';
import { refusedPush } from '../front-door/changes.ts';
import { logFault } from '../front-door/fault-log.ts';
import { type Held, type HeldRefusal, releaseWith } from '../front-door/held-bytes.ts';
import { bucketOutageLine } from '../front-door/texts/bucket-outages.ts';
import { rateRefusalText } from '../front-door/texts/denials.ts';
import { outageOf } from '../front-door/texts/outages.ts';
import { REF_REFUSALS } from '../front-door/texts/ref-faults.ts';
import { countRefused } from '../front-door/transfer-budget.ts';
import { GitHttpError, sendBytes, sendEarly, writeHead } from './answer.ts';
import { type Body, openBody } from './body.ts';
import { faultError } from './faults.ts';
import type { GitRequest } from './git-request.ts';
import { limitListSpan } from './list-span.ts';
import { adviceFor, OUTCOME_UNKNOWN, outageLine, pushRefusalText, type ReadBody } from './push-messages.ts';
import { createPushPace, PushCut } from './push-pace.ts';
import { PUSHED, type PushResult, refusedFor, resultOfError, resultOfList, resultOfPush } from './push-result.ts';

const RESULT_TYPE = 'application/x-git-receive-pack-result';
const KEEP_ALIVE_MS = 5_000;

export async function serveReceivePack(git: GitRequest): Promise<void> {
  const { context, request, response, finished } = git;
  // A connection that has ended has no address.
  const address = context.clientAddress(request);
  const held = context.bodyBudget.open({ account: git.principal.account });
  // The report names the commands again, so it is covered too.
  releaseWith(response, held);
  const place = context.slowPushes.open({ account: git.principal.account, address });
  const pace = createPushPace(context.clock.monotonicMs, place);
  const body = openBody(request, { idleMs: BODY_IDLE_MS, pace });
  let packFollows = false;
  let isCommitted = false;
  try {
    const begun = await begin(git, body, held);
    packFollows = begun.packFollows;
    if ('refused' in begun) {
      // Nothing else of the commands is left, however long the client takes for what it still sends.
      held.keep(begun.refused instanceof GitHttpError ? 0 : begun.refused.length);
      finished.result = begun.result;
      await discard(git, body);
      if (begun.refused instanceof GitHttpError) throw begun.refused;
      await send(git, begun.refused);
      return;
    }
    isCommitted = await answer(git, begun.list, begun.rest, body);
  } finally {
    place.leave();
    finished.receivedBytes = body.receivedBytes();
    // A push that commits has its bytes in its event, and a request whose connection broke is not complete.
    if (packFollows && !isCommitted && finished.result?.outcome === 'refused' && request.complete) {
      countRefused(context, git.repository, {
        principal: git.principal,
        address,
        receivedBytes: finished.receivedBytes,
      });
    }
  }
}

type Begun = { readonly packFollows: boolean } & (
  | { readonly list: CommandList; readonly rest: AsyncIterable<Uint8Array> }
  /** The answer to a push that is not carried out. */
  | { readonly refused: Uint8Array | GitHttpError; readonly result: PushResult }
);

/** Reads the commands, and decides whether the push may go on. */
async function begin(git: GitRequest, body: Body, held: Held): Promise<Begun> {
  const { context, principal } = git;
  const span = limitListSpan(body, context.clock.monotonicMs);
  try {
    let full: HeldRefusal | null = null;
    const hold = (bytes: number): string | null => {
      full = held.grow(bytes);
      return full?.text ?? null;
    };
    const { list, rest } = await readCommandList(span.bytes, hold, cutOf);
    if ('refused' in list) {
      return { refused: refusedWhole(list), result: resultOfList(list, full), packFollows: false };
    }
    const { packFollows } = list;
    const refChanges = list.commands.reduce((sum, { ref }) => sum + refChangesOf(ref), list.refusedCommands.length);
    if (refChanges === 0) {
      const isProbe = !(await holdsBytes(rest));
      if (isProbe) return { refused: new Uint8Array(), result: PUSHED, packFollows: false };
      const result = refusedFor('command-malformed');
      return { refused: new GitHttpError(400, NO_COMMAND), result, packFollows: false };
    }
    const refusal = await refusedPush(context, principal, { refChanges, onlyDeletes: !packFollows });
    if (refusal === null) return { list, rest, packFollows };
    const text = pushRefusal(rateRefusalText(refusal), list.capabilities, refusedRefs(list, NOT_UNPACKED));
    return { refused: text, result: refusedFor(refusal.exceeded), packFollows };
  } finally {
    span.end();
  }
}

function cutOf(error: unknown): ProtocolRefusal<CutCode> | null {
  return error instanceof PushCut ? { refused: error.code, detail: error.message } : null;
}

const NO_COMMAND = 'Not a push: bytes follow a command list that holds no command';

/** Whether a pack, or anything else, follows the command list. Git's probe for a login ends with the list. */
async function holdsBytes(rest: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const chunk of rest) if (chunk.length > 0) return true;
  return false;
}

/**
 * A body that is not a command list gets status 400. Any other refusal is a report, since git shows nothing but the
 * status of a refused POST.
 */
function refusedWhole({ refused, detail, capabilities, names }: CommandListRefusal): Uint8Array | GitHttpError {
  if (capabilities === null && MALFORMED.has(refused)) return new GitHttpError(400, `Not a push: ${detail}`);
  if (capabilities === null && CUTS.has(refused)) return new GitHttpError(408, detail, { Connection: 'close' });
  const refs = names.map((name): RefReport => ({ name, refused: NOT_UNPACKED }));
  return pushRefusal(detail, capabilities, refs);
}

/** What git says of a ref whose push is refused as a whole. */
const NOT_UNPACKED = 'unpacker error';

/** Every command of a push that is refused as a whole: bad names have reasons of their own. */
function refusedRefs({ commands, refusedCommands }: CommandList, reason: string): readonly RefReport[] {
  return [
    ...commands.map(({ ref }): RefReport => ({ name: ref, refused: reason })),
    ...refusedCommands.map(({ name, detail }): RefReport => ({ name, refused: detail })),
  ];
}

const MALFORMED: ReadonlySet<CommandListRefusal['refused']> = new Set([
  'packet-malformed',
  'packet-truncated',
  'command-malformed',
  'shallow-malformed',
] as const);

const CUTS: ReadonlySet<CommandListRefusal['refused']> = new Set(['push-too-slow', 'too-many-slow-pushes'] as const);

/** Resolves whether it committed anything. */
async function answer(
  git: GitRequest,
  list: CommandList,
  pack: AsyncIterable<Uint8Array>,
  body: Body,
): Promise<boolean> {
  const { context, requestId, response } = git;
  const keepAlive = startKeepAlive(git, list.capabilities.sideBand64k);
  let outcome: PushOutcome;
  let whole: boolean;
  try {
    outcome = await push(git, list, pack, body.receivedBytes, keepAlive.start);
    whole = await discard(git, body);
  } catch (error) {
    const failure = failureToReport(git, error);
    // Git reads no answer while it cannot send its body.
    await discard(git, body);
    if (failure !== null) {
      await reportFailure(git, list, failure);
      return false;
    }
    // The keep-alive packets were sent with status 200, so the failure can only follow them, on the side band.
    if (response.headersSent && !response.destroyed) response.end(fatalPackets(faultError(error, requestId).message));
    throw error;
  } finally {
    keepAlive.stop();
  }
  const bytes = report(git.repository, list, outcome, { receivedBytes: body.receivedBytes(), whole });
  git.finished.result = resultOfPush(list, outcome);
  await send(git, bytes);
  await context.failpoint('push-answered');
  return 'results' in outcome && outcome.results.some(({ code }) => code === null);
}

async function send(git: GitRequest, bytes: Uint8Array): Promise<void> {
  const { request, response, finished } = git;
  finished.sentBytes = bytes.length;
  if (response.headersSent) response.end(bytes);
  else if (request.complete || response.destroyed) sendBytes(git, RESULT_TYPE, bytes);
  else await sendEarly(git, RESULT_TYPE, bytes);
}

interface ReportedFailure {
  readonly error: unknown;
  /** For the whole push. */
  readonly line: string;
  /** For each ref. */
  readonly reason: string;
}

/**
 * Git would show nothing but the status of a refused POST, so a report says what the client must know of an outage, or
 * why it is cut. Only an append without an answer may have changed something: nothing fails after the append that
 * commits a push.
 */
function failureToReport({ repository }: GitRequest, error: unknown): ReportedFailure | null {
  if (error instanceof PushCut) return { error, line: error.message, reason: error.reason };
  const line = bucketOutageLine(repository, error);
  if (line !== null) return { error, line, reason: 'the storage bucket failed' };
  if (error instanceof EventStoreError && error.code === 'append-outcome-unknown') {
    return { error, line: OUTCOME_UNKNOWN, reason: 'it may have been committed: fetch, then push again' };
  }
  const outage = outageOf(error);
  if (outage?.status !== 503) return null;
  return { error, line: outageLine(outage), reason: 'nothing was changed: try again later' };
}

async function reportFailure(
  git: GitRequest,
  list: CommandList,
  { line, reason, error }: ReportedFailure,
): Promise<void> {
  const { context, requestId, repository, finished, signal } = git;
  finished.result = resultOfError(error, { repository, hasLeft: signal.aborted });
  // The failure of work for a client that left is no news, nor is a client that is slow.
  const isNews = !signal.aborted && !(error instanceof PushCut);
  if (isNews) logFault(context, error, { requestId, operation: finished.operation, status: 503 });
  const refs = refusedRefs(list, reason);
  const { reportStatus, sideBand64k } = list.capabilities;
  const isShown = reportStatus !== 'none' || sideBand64k;
  await send(
    git,
    isShown ? pushAnswer({ unpackFailed: line, refs }, list.capabilities, [line]) : pushRefusal(line, null, []),
  );
}

async function push(
  git: GitRequest,
  list: CommandList,
  pack: AsyncIterable<Uint8Array>,
  receivedBytes: () => number,
  onEndOfInput: () => void,
): Promise<PushOutcome> {
  const { context, request, requestId, repository, principal, requirement, signal } = git;
  const badName = list.refusedCommands.length > 0;
  if (list.commands.length === 0 || (list.capabilities.atomic && badName)) {
    return { results: list.commands.map(({ ref }) => ({ ref, code: 'atomic-push-refused' })), defaultBranch: null };
  }
  const permitted = { principal, requirement, id: '', repository, door: 'git' } as const;
  const origin = () => originOf(context, request, requestId, permitted);
  const { cause, guarding, door } = await origin();
  return pushRefs(context, {
    repository,
    quotas: context.plans[repository.account.plan],
    cause,
    causeAgain: async () => (await origin()).cause,
    guarding,
    door,
    commands: list.commands,
    refusedNames: list.refusedCommands.length,
    atomic: list.capabilities.atomic,
    pushOptions: list.pushOptions,
    pack: list.packFollows ? pack : null,
    receivedBytes,
    signal,
    onEndOfInput,
  });
}

function report(repository: FoundRepository, list: CommandList, outcome: PushOutcome, read: ReadBody): Uint8Array {
  if ('refused' in outcome) {
    const { code } = outcome.refused;
    const shallow = code === 'pack-not-connected' && list.shallow.length > 0;
    const refs = refusedRefs(list, shallow ? 'shallow update not allowed' : NOT_UNPACKED);
    const detail = pushRefusalText(outcome.refused, read);
    const unpackFailed = shallow ? null : detail;
    const messages = [detail, ...adviceFor(code, shallow)];
    return pushAnswer({ unpackFailed, refs }, list.capabilities, messages);
  }
  const badNames = list.refusedCommands.map((refused): RefReport => ({ name: refused.name, refused: refused.detail }));
  const refs = outcome.results.map(
    ({ ref, code }): RefReport => ({ name: ref, refused: code === null ? null : REF_REFUSALS[code] }),
  );
  const messages = [...warnings(list, outcome), ...choice(repository, outcome.defaultBranch)];
  return pushAnswer({ unpackFailed: null, refs: [...refs, ...badNames] }, list.capabilities, messages);
}

/** Tells who moves a repository here which branch its clones check out, unless it is the usual one. */
function choice({ account, owned }: FoundRepository, branch: string | null): readonly string[] {
  if (branch === null || branch === 'main') return [];
  const change = `strata repo edit ${account.username}/${owned.name} --default-branch <branch>`;
  return [
    `The default branch is now ${branch}, because neither main nor master was pushed.`,
    `Change it on the settings page of the repository, or with: ${change}`,
  ];
}

/** The warning of git's receive-pack about the deletion of a ref that is not there; once for all of them. */
function warnings(list: CommandList, { results }: Exclude<PushOutcome, { refused: unknown }>): readonly string[] {
  const absent = list.commands.filter(
    ({ before, after }, index) => before === null && after === null && results[index]?.code === null,
  );
  const [first] = absent;
  if (first === undefined) return [];
  const others = absent.length === 1 ? '' : ` and ${absent.length - 1} others`;
  return [`warning: deleting a non-existent ref: ${first.ref}${others}`];
}

/** Checking a received pack may take minutes: empty packets keep the client and its proxies from timing out. */
function startKeepAlive(git: GitRequest, sideBand: boolean): { start(): void; stop(): void } {
  const { response } = git;
  let timer: NodeJS.Timeout | null = null;
  const beat = (): void => {
    if (!response.headersSent) writeHead(git, 200, ['Content-Type', RESULT_TYPE]);
    response.write(KEEP_ALIVE_PACKET);
  };
  return {
    start() {
      if (sideBand) timer ??= setInterval(beat, KEEP_ALIVE_MS);
    },
    stop() {
      if (timer !== null) clearInterval(timer);
    },
  };
}

/**
 * Discards the rest of the body; returns whether that was all of it. If it exceeds the bound, the connection closes
 * with the answer.
 */
async function discard({ response }: GitRequest, body: Body): Promise<boolean> {
  const whole = await body.discardRest(REFUSED_BODY_DRAIN_BYTES_MAX);
  if (!whole && !response.headersSent) response.setHeader('Connection', 'close');
  return whole;
}
