/** The protocol server's two calls to append: BatchAppend and Append of streams.proto. */
import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import * as grpc from '@grpc/grpc-js';
import type { AppendFault } from './faults.ts';
import {
  batchError,
  batchExpectation,
  batchSuccess,
  expectation,
  proposedOf,
  refusal,
  streamIdentifier,
  streamNameOf,
  unarySuccess,
  unaryWrongVersion,
  wrongVersion,
} from './messages.ts';
import type { ReadContext } from './reading.ts';
import { APPEND_BYTES_MAX, type Appended, type Expectation, type ProposedEvent } from './recorded-log.ts';

export interface AppendContext extends ReadContext {
  readonly counts: ReadContext['counts'] & Record<'appends', number>;
  readonly restart: () => void;
  /** The BatchAppend calls that are open. */
  readonly batches: Set<grpc.ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>>;
}

/** The delay of the answer for the fault `answer-late`. */
const LATE_MS = 900;

interface Append {
  readonly stream: string;
  readonly expected: Expectation;
  readonly events: ProposedEvent[];
  /** The deadline that the client sent, by its own clock; 0 for none. */
  readonly deadlineMs: number;
}

type Outcome = (Appended & { readonly late?: boolean }) | { readonly outcome: 'timed-out' | 'access-denied' };

/** Applies the fault that the test chose for this append, or commits it. Returns null for no answer. */
function decide(context: AppendContext, append: Append, halfClose: () => void): Outcome | null {
  const { log, faults } = context;
  context.counts.appends += 1;
  const commit = (): Appended => log.append(append.stream, append.expected, append.events);
  const fault: AppendFault | null =
    faults.append?.(
      append.stream,
      append.events.map(({ id }) => id),
    ) ?? null;
  if (fault?.startsWith('commit-and-') === true || fault === 'lose-answer') commit();
  switch (fault) {
    case null:
      break;
    case 'answer-late':
      return { ...commit(), late: true };
    case 'no-position': {
      const committed = commit();
      return committed.outcome === 'committed' ? { ...committed, position: -1n } : committed;
    }
    case 'lose-answer':
    case 'stall':
      return null;
    case 'half-close':
    case 'commit-and-half-close':
      halfClose();
      return null;
    case 'restart':
    case 'commit-and-restart':
      context.restart();
      return null;
    case 'time-out':
    case 'commit-and-time-out':
      return { outcome: 'timed-out' };
    case 'access-denied':
      return { outcome: 'access-denied' };
  }
  if (append.deadlineMs !== 0 && append.deadlineMs < Date.now() + faults.clockAheadMs) return { outcome: 'timed-out' };
  return commit();
}

export function batchAppend(
  context: AppendContext,
  call: grpc.ServerDuplexStream<streams.BatchAppendReq, streams.BatchAppendResp>,
): void {
  const arriving = new Map<string, Append>();
  let ended = false;
  call.on('data', (request: streams.BatchAppendReq) => {
    // The fault: the server has ended its side of the call, and ignores every append that still arrives.
    if (ended || context.faults.stalled) return;
    const correlation = request.getCorrelationId()?.getString() ?? '';
    const options = request.getOptions();
    const append = arriving.get(correlation) ?? {
      stream: streamNameOf(options?.getStreamIdentifier()),
      expected: options === undefined ? 'any' : batchExpectation(options),
      events: [],
      deadlineMs: options?.getDeadline()?.toDate().getTime() ?? 0,
    };
    append.events.push(...request.getProposedMessagesList().map(proposedOf));
    arriving.set(correlation, append);
    if (!request.getIsFinal()) return;
    arriving.delete(correlation);
    const outcome = decide(context, append, () => {
      ended = true;
      call.end();
    });
    if (outcome === null) return;
    const answer = batchAnswer(append, outcome)
      .setCorrelationId(new shared.UUID().setString(correlation))
      .setStreamIdentifier(streamIdentifier(append.stream));
    if ('late' in outcome) setTimeout(() => call.write(answer), LATE_MS);
    else call.write(answer);
  });
  context.batches.add(call);
  const remove = (): boolean => context.batches.delete(call);
  call.on('cancelled', remove);
  call.on('end', () => {
    remove();
    call.end();
  });
}

function batchAnswer({ expected }: Append, result: Outcome): streams.BatchAppendResp {
  switch (result.outcome) {
    case 'committed': {
      const answer = batchSuccess(result.revision, result.position);
      if (result.position < 0n) answer.getSuccess()?.clearPosition();
      return answer;
    }
    case 'wrong-expected-version':
      return batchError('WrongExpectedVersion', wrongVersion(result.current, expected));
    case 'stream-deleted':
      return batchError('StreamDeleted');
    case 'too-large':
      return batchError(
        'MaximumAppendSizeExceeded',
        new shared.MaximumAppendSizeExceeded().setMaxappendsize(APPEND_BYTES_MAX),
      );
    case 'timed-out':
      return batchError('Timeout');
    case 'access-denied':
      return batchError('AccessDenied');
  }
}

export function unaryAppend(
  context: AppendContext,
  call: grpc.ServerReadableStream<streams.AppendReq, streams.AppendResp>,
  answer: grpc.sendUnaryData<streams.AppendResp>,
): void {
  let append: Append | null = null;
  call.on('data', (request: streams.AppendReq) => {
    const options = request.getOptions();
    const message = request.getProposedMessage();
    if (options !== undefined) {
      const stream = streamNameOf(options.getStreamIdentifier());
      append = { stream, expected: expectation(options), events: [], deadlineMs: 0 };
    }
    if (message !== undefined) append?.events.push(proposedOf(message));
  });
  call.on('end', () => {
    if (append === null) return;
    const result = decide(context, append, () => call.destroy());
    if (result !== null) answerUnary(append, result, answer);
  });
}

function answerUnary(append: Append, result: Outcome, answer: grpc.sendUnaryData<streams.AppendResp>): void {
  switch (result.outcome) {
    case 'committed':
      return answer(null, unarySuccess(result.revision, result.position));
    case 'wrong-expected-version':
      return answer(null, unaryWrongVersion(result.current, append.expected));
    case 'stream-deleted':
      return answer(refusal('stream-deleted', { 'stream-name': append.stream }));
    case 'too-large':
      return answer(refusal('maximum-append-size-exceeded', { 'maximum-append-size': String(APPEND_BYTES_MAX) }));
    case 'timed-out':
      return answer({ code: grpc.status.ABORTED, details: 'Write timed out' });
    case 'access-denied':
      return answer(refusal('access-denied', {}));
  }
}

export function tombstone(
  { log, faults, counts }: AppendContext,
  request: streams.TombstoneReq,
  answer: grpc.sendUnaryData<streams.TombstoneResp>,
): void {
  const options = request.getOptions();
  const stream = streamNameOf(options?.getStreamIdentifier());
  const expected = options?.hasRevision() === true ? Number(options.getRevision()) : 'any';
  counts.appends += 1;
  const fault = faults.append?.(stream, []) ?? null;
  if (fault === 'stall') return;
  const result = log.tombstone(stream, expected);
  if (fault === 'lose-answer') return;
  switch (result.outcome) {
    case 'committed':
      return answer(null, new streams.TombstoneResp().setNoPosition(new shared.Empty()));
    case 'wrong-expected-version': {
      const actual = result.current === null ? {} : { 'actual-version': String(result.current) };
      const details = { 'stream-name': stream, 'expected-version': String(expected), ...actual };
      return answer(refusal('wrong-expected-version', details));
    }
    case 'stream-deleted':
    case 'too-large':
      return answer(refusal(result.outcome, { 'stream-name': stream }));
  }
}
