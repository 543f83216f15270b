/** Translates between the protocol server's log and the generated messages of EventStoreDB's client. */
import shared from '@eventstore/db-client/generated/shared_pb.js';
import status from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import * as grpc from '@grpc/grpc-js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import type { Expectation, ProposedEvent, StoredEvent } from './recorded-log.ts';

const TICKS_PER_MS = 10_000n;

export function streamNameOf(identifier: shared.StreamIdentifier | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}

export function streamIdentifier(name: string): shared.StreamIdentifier {
  return new shared.StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(name)));
}

export function proposedOf(
  message: streams.BatchAppendReq.ProposedMessage | streams.AppendReq.ProposedMessage,
): ProposedEvent {
  return {
    id: message.getId()?.getString() ?? '',
    type: message.getMetadataMap().get('type') ?? '',
    contentType: message.getMetadataMap().get('content-type') ?? '',
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

export function batchExpectation(options: streams.BatchAppendReq.Options): Expectation {
  if (options.hasNoStream()) return 'no-stream';
  if (options.hasStreamExists()) return 'stream-exists';
  return options.hasStreamPosition() ? Number(options.getStreamPosition()) : 'any';
}

export function expectation(options: streams.AppendReq.Options): Expectation {
  if (options.hasNoStream()) return 'no-stream';
  if (options.hasStreamExists()) return 'stream-exists';
  return options.hasRevision() ? Number(options.getRevision()) : 'any';
}

export function eventAnswer(event: StoredEvent): streams.ReadResp {
  const position = String(event.position);
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(event.id))
    .setStreamIdentifier(streamIdentifier(event.stream))
    .setStreamRevision(String(event.revision))
    .setCommitPosition(position)
    .setPreparePosition(position)
    .setCustomMetadata(event.metadata)
    .setData(event.data);
  recorded
    .getMetadataMap()
    .set('type', event.type)
    .set('content-type', event.contentType)
    .set('created', String(BigInt(event.createdMs) * TICKS_PER_MS));
  return new streams.ReadResp().setEvent(
    new streams.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(position),
  );
}

export function notFoundAnswer(stream: string): streams.ReadResp {
  const notFound = new streams.ReadResp.StreamNotFound().setStreamIdentifier(streamIdentifier(stream));
  return new streams.ReadResp().setStreamNotFound(notFound);
}

export function confirmation(id: string): streams.ReadResp {
  return new streams.ReadResp().setConfirmation(new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(id));
}

export function batchSuccess(revision: number, position: bigint): streams.BatchAppendResp {
  const success = new streams.BatchAppendResp.Success()
    .setCurrentRevision(String(revision))
    .setPosition(allPosition(position));
  return new streams.BatchAppendResp().setSuccess(success);
}

function allPosition(position: bigint): shared.AllStreamPosition {
  return new shared.AllStreamPosition().setCommitPosition(String(position)).setPreparePosition(String(position));
}

export function unarySuccess(revision: number, position: bigint): streams.AppendResp {
  const place = new streams.AppendResp.Position()
    .setCommitPosition(String(position))
    .setPreparePosition(String(position));
  const success = new streams.AppendResp.Success().setCurrentRevision(String(revision)).setPosition(place);
  return new streams.AppendResp().setSuccess(success);
}

export function unaryWrongVersion(current: number | null, expected: Expectation): streams.AppendResp {
  const wrong = new streams.AppendResp.WrongExpectedVersion();
  if (current === null) wrong.setCurrentNoStream(new shared.Empty());
  else wrong.setCurrentRevision(String(current));
  if (typeof expected === 'number') wrong.setExpectedRevision(String(expected));
  else wrong.setExpectedNoStream(new shared.Empty());
  return new streams.AppendResp().setWrongExpectedVersion(wrong);
}

/** The answer that refuses a batch append: a Status whose Any has the reason as its type (shared.proto). */
export function batchError(
  name: 'WrongExpectedVersion' | 'Timeout' | 'AccessDenied' | 'StreamDeleted' | 'MaximumAppendSizeExceeded' | 'Unknown',
  content: { serializeBinary(): Uint8Array } = new shared.Empty(),
): streams.BatchAppendResp {
  const details = new any.Any();
  details.pack(content.serializeBinary(), `event_store.client.${name}`);
  return new streams.BatchAppendResp().setError(new status.Status().setMessage(name).setDetails(details));
}

export function wrongVersion(current: number | null, expected: Expectation): shared.WrongExpectedVersion {
  const wrong = new shared.WrongExpectedVersion();
  if (current === null) wrong.setCurrentNoStream(new empty.Empty());
  else wrong.setCurrentStreamRevision(String(current));
  if (typeof expected === 'number') wrong.setExpectedStreamPosition(String(expected));
  else wrong.setExpectedNoStream(new empty.Empty());
  return wrong;
}

/** How the server refuses to read a stream with a tombstone. */
export function streamDeleted(stream: string): Partial<grpc.StatusObject> {
  return refusal('stream-deleted', { 'stream-name': stream });
}

export function refusal(exception: string, details: Readonly<Record<string, string>>): Partial<grpc.StatusObject> {
  const metadata = new grpc.Metadata();
  metadata.set('exception', exception);
  for (const [name, value] of Object.entries(details)) metadata.set(name, value);
  return { code: grpc.status.FAILED_PRECONDITION, details: exception, metadata };
}
