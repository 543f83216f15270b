/**
 * Sends inputs over many connections at the same time.
 *
 * Invariants: a connection is used again only after a whole answer to a whole request. All connections are to the
 * loopback interface, and their number is bounded.
 */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnswerReader, createAnswerReader } from './answers.ts';
import type { Input } from './inputs.ts';

const LANES = 48;
/** After this time an input waits for its answer beside the lanes, so that slow answers do not hold up the others. */
const LANE_WAIT_MS = 100;
const BESIDE_MAX = 150;
/** A request that the server takes for incomplete is not answered; the client gives up. */
const ANSWER_WAIT_MS = 6_000;

export interface Sent {
  readonly input: Input;
  /** 0 without an answer. */
  readonly status: number;
}

export interface Lanes {
  /** Sends inputs until `next` returns null and all have ended. */
  run(next: () => Promise<Input | null>): Promise<void>;
}

export function createLanes(port: number, onSent: (sent: Sent) => void): Lanes {
  const idle: Line[] = [];
  const beside = new Set<Promise<void>>();

  async function lane(next: () => Promise<Input | null>): Promise<void> {
    for (let input = await next(); input !== null; input = await next()) {
      const sending = send(port, idle, input).then((status) => onSent({ input, status }));
      const isOver = await Promise.race([sending.then(() => true), sleep(LANE_WAIT_MS, false)]);
      if (isOver) continue;
      beside.add(sending);
      sending.finally(() => beside.delete(sending)).catch(() => undefined);
      while (beside.size >= BESIDE_MAX) await Promise.race(beside);
    }
  }

  return {
    async run(next) {
      await Promise.all(Array.from({ length: LANES }, () => lane(next)));
      await Promise.all(beside);
      for (const { socket } of idle.splice(0)) socket.destroy();
    },
  };
}

/** A connection whose answers go to the input that is sent over it. */
interface Line {
  readonly socket: Socket;
  /** Null while no input is sent: what arrives then belongs to none, and ends the connection. */
  current: { readonly reader: AnswerReader; readonly over: () => void } | null;
}

function open(port: number): Line {
  const line: Line = { socket: connect(port, '127.0.0.1').setNoDelay(), current: null };
  const { socket } = line;
  const over = (): void => line.current?.over();
  socket.on('error', () => undefined);
  socket.on('end', over).on('close', over);
  socket.on('data', (chunk: Buffer) => {
    if (line.current === null) socket.destroy();
    line.current?.reader.add(chunk);
    if (line.current?.reader.state !== 'reading') over();
  });
  return line;
}

/** Sends one input as it says. Resolves with the status of the answer when the sending is over; never rejects. */
async function send(port: number, idle: Line[], { bytes, isHead, sending }: Input): Promise<number> {
  let line = idle.pop();
  while (line?.socket.destroyed === true || line?.socket.readableEnded === true) line = idle.pop();
  line ??= open(port);
  const { socket } = line;
  const reader = createAnswerReader(isHead);
  const over = new Promise<void>((resolve) => (line.current = { reader, over: resolve }));
  const timer = setTimeout(() => socket.destroy(), ANSWER_WAIT_MS);
  const { cutAt, pauseMs, after } = sending;
  socket.write(cutAt === null ? bytes : bytes.subarray(0, cutAt));
  if (pauseMs > 0) await Promise.race([sleep(pauseMs), over]);
  if (after === 'destroy') socket.destroy();
  else if (after === 'end') socket.end();
  else if (cutAt !== null) socket.write(bytes.subarray(cutAt));
  await over;
  clearTimeout(timer);
  line.current = null;
  if (after === 'wait' && reader.state === 'whole' && socket.writableLength === 0) idle.push(line);
  else socket.destroy();
  return reader.status;
}
