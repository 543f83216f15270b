/**
 * Reads a request that is sent in parts: its JSON, then contents, which wait on this node's disk until it is answered.
 *
 * Invariants: it arrives as a push does: its JSON within the span and the memory for that, and all of it within the
 * pace of a push. The contents are read before the request has its turn, and only those that one change names. Whatever
 * ends the request, nothing of them is left. Like a push it is read on after a refusal, so that its client reads why.
 */
import type { FastifyRequest } from 'fastify';
import { BODY_CHUNK_HELD_BYTES, BODY_IDLE_MS, REFUSED_BODY_DRAIN_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { StoredBlob } from '../../core/ports/new-contents.ts';
import type { Requirement } from '../../core/use-cases/callers/permission.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import {
  type ContentsOfRequest,
  holdContents,
  type LetIn,
  letInAgain,
} from '../../core/use-cases/pushing/hold-contents.ts';
import { BodyNotHeld } from '../front-door/body-budget.ts';
import { closedSignal } from '../front-door/closed-signal.ts';
import { boundaryOf, type FormPart, MalformedParts, readFormParts } from '../front-door/form-parts.ts';
import { type Held, releaseWith } from '../front-door/held-bytes.ts';
import { countRefused } from '../front-door/transfer-budget.ts';
import { GitHttpError } from '../git-http/answer.ts';
import { type Body, BodyError, openBody } from '../git-http/body.ts';
import { limitListSpan } from '../git-http/list-span.ts';
import { createPushPace } from '../git-http/push-pace.ts';
import type { Exchange } from './calls.ts';
import { rateAnswer } from './denials.ts';
import { type FieldFault, problem } from './http/answer.ts';
import { namedStep } from './http/input.ts';
import { BodyRefused, PUSH_BODY_VALUES_MAX, readJsonBody } from './http/json-body.ts';
import { PUSH_BODY_BYTES_MAX, PUSH_BODY_HELD_FACTOR } from './limits.ts';
import { namedParts, partMissing } from './new-commit.ts';
import type { Outcome } from './route.ts';
import { COMMIT_PART_BYTES_MAX, JSON_PART } from './schemas/new-commits.ts';
import type { ApiServices } from './services.ts';

/** Stands for the body of a request in parts that nobody has read yet. */
export class PartsToCome {}

export function isInParts({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(headers['content-type'] ?? '');
}

/** With the caller and the repository of the time when everything has arrived. */
export interface Sent extends LetIn {
  /** The value of the JSON. */
  readonly body: unknown;
  readonly contents: ReadonlyMap<string, StoredBlob>;
}

export interface Sending extends LetIn, Exchange {
  readonly requirement: Requirement;
}

/** Calls `use` with what was sent. Throws `BodyRefused` and `BodyNotHeld` for what is not read on. */
export async function withSentParts(
  context: ApiServices,
  sending: Sending,
  use: (sent: Sent) => Promise<Outcome>,
): Promise<Outcome> {
  const { request, reply, principal, repository } = sending;
  const { raw } = request;
  // A connection that has ended has no address.
  const address = context.clientAddress(raw);
  const place = context.slowPushes.open({ account: principal.account, address });
  const pace = createPushPace(context.clock.monotonicMs, place);
  const body = openBody(raw, { idleMs: BODY_IDLE_MS, pace });
  const disk: { contents: ContentsOfRequest | null } = { contents: null };
  let isMade = false;
  let failure: unknown;
  try {
    const outcome = await receive(context, { ...sending, body, use }, (contents) => {
      disk.contents = contents;
    });
    isMade = makesEvent(outcome);
    return outcome;
  } catch (error) {
    failure = refusedBody(error);
    throw failure;
  } finally {
    try {
      await disk.contents?.remove();
      // Nobody is waited for who was waited for long enough.
      const isWhole = !isLate(failure) && (await body.discardRest(REFUSED_BODY_DRAIN_BYTES_MAX).catch(() => false));
      if (!isWhole) reply.header('connection', 'close');
      const isRefused = !isMade && (failure === undefined || failure instanceof BodyRefused);
      if (disk.contents !== null && isRefused && raw.complete) {
        countRefused(context, repository, { principal, address, receivedBytes: body.receivedBytes() });
      }
    } finally {
      place.leave();
    }
  }
}

/** Whether the bytes of the request are in an event that it made; else they count as those of a refused push. */
function makesEvent(outcome: Outcome): boolean {
  return 'status' in outcome && outcome.status === 201 && outcome.headers['idempotent-replayed'] === undefined;
}

function isLate(failure: unknown): boolean {
  return failure instanceof BodyRefused && failure.answer.status === 408;
}

/** Returns the error for the API of one that ends the reading of a body. */
function refusedBody(error: unknown): unknown {
  if (error instanceof MalformedParts) return new BodyRefused(problem(400, error.message));
  if (error instanceof GitHttpError) return new BodyRefused(problem(error.status, error.message, CLOSING));
  if (error instanceof BodyError && error.code === 'body-too-slow') {
    return new BodyRefused(problem(408, error.message, CLOSING));
  }
  return error;
}

const CLOSING = { connection: 'close' };

interface Receiving extends Sending {
  readonly body: Body;
  readonly use: (sent: Sent) => Promise<Outcome>;
}

async function receive(
  context: ApiServices,
  { request, reply, principal, repository, requirement, body, use }: Receiving,
  onHeld: (contents: ContentsOfRequest) => void,
): Promise<Outcome> {
  const { 'content-encoding': coding = 'identity', 'content-type': type = '' } = request.headers;
  if (coding.trim().toLowerCase() !== 'identity') return problem(400, 'A body is not compressed');
  const boundary = boundaryOf(type);
  if (boundary === null) throw new MalformedParts();
  const held = context.bodyBudget.open({ account: principal.account });
  releaseWith(reply.raw, held);
  const span = limitListSpan(body, context.clock.monotonicMs);
  try {
    const parts = readFormParts(boundary, span.bytes);
    const json = await jsonOf(await parts.next(), { context, principal, held });
    span.end();
    const named = namedParts(json);
    // The check of the body tells what is wrong.
    if (named === null) return await use({ body: json, principal, repository, contents: new Map() });
    if ('faults' in named) return problem(422, named.faults);
    const disk = await holdContents(context, { repository, signal: closedSignal(reply.raw) });
    if ('refused' in disk) return disk;
    onHeld(disk);
    const contents = await contentsOf(parts, named, disk);
    if ('refused' in contents) return contents;
    const now = await letInAgain(context, { principal, repository }, requirement);
    return 'refused' in now ? now : await use({ ...now, body: json, contents });
  } finally {
    span.end();
  }
}

interface ForJson {
  readonly context: ApiServices;
  readonly principal: Principal;
  readonly held: Held;
}

async function jsonOf(
  { value: part }: IteratorResult<FormPart, void>,
  { context, principal, held }: ForJson,
): Promise<unknown> {
  if (part === undefined || part.name !== JSON_PART) {
    throw new BodyRefused(problem(400, `The first part is the JSON, and is named ${JSON_PART}`));
  }
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of part.bytes) {
    sizeBytes += chunk.length;
    if (sizeBytes > PUSH_BODY_BYTES_MAX) {
      throw new BodyRefused(problem(413, `The part ${JSON_PART} is larger than ${PUSH_BODY_BYTES_MAX} bytes`));
    }
    const full = held.grow(PUSH_BODY_HELD_FACTOR * chunk.length + BODY_CHUNK_HELD_BYTES);
    if (full !== null) throw new BodyNotHeld(full);
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks, sizeBytes);
  const refusal = context.callers.recordBody(principal, sizeBytes);
  if (refusal !== null) throw new BodyRefused(rateAnswer(refusal));
  return readJsonBody({}, bytes, PUSH_BODY_VALUES_MAX);
}

/** Reads the parts behind the JSON: each is named by one change, and none is missing. */
async function contentsOf(
  parts: AsyncIterable<FormPart>,
  named: ReadonlyMap<string, number>,
  disk: ContentsOfRequest,
): Promise<Sent['contents'] | Extract<Outcome, { readonly refused: unknown }>> {
  const contents = new Map<string, StoredBlob>();
  for await (const { name, bytes } of parts) {
    if (!named.has(name)) throw unfit(partFault(name, 'No change names this part'));
    if (contents.has(name)) throw unfit(partFault(name, 'Another part has this name'));
    const added = await disk.add(bounded(name, bytes));
    if ('refused' in added) return added;
    contents.set(name, added);
  }
  const missing = [...named].find(([name]) => !contents.has(name));
  if (missing !== undefined) throw unfit(partMissing(missing[1]));
  return contents;
}

function unfit(fault: FieldFault): BodyRefused {
  return new BodyRefused(problem(422, [fault]));
}

function partFault(name: string, msg: string): FieldFault {
  return { loc: ['body', namedStep(name)], msg, type: 'custom' };
}

async function* bounded(name: string, bytes: FormPart['bytes']): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const chunk of bytes) {
    sizeBytes += chunk.length;
    if (sizeBytes > COMMIT_PART_BYTES_MAX) {
      throw new BodyRefused(problem(413, `The part ${namedStep(name)} is larger than ${COMMIT_PART_BYTES_MAX} bytes`));
    }
    yield chunk;
  }
}
