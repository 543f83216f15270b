/**
 * One keep-alive connection to a server on the loopback interface: sends prepared bytes and waits for the answer.
 *
 * Invariants: one exchange at a time. Each connection receives into one buffer, so that reading creates no garbage.
 * A connection that the server closed between two exchanges is opened again.
 */
import { connect, type Socket } from 'node:net';
import { type Answer, createAnswerReader } from './wire.ts';

export interface Connection {
  /** Sends the parts as one request. Rejects when the connection breaks before the answer is complete. */
  exchange(parts: readonly Uint8Array[], keepBody: boolean): Promise<Answer>;
  close(): void;
}

const READ_BUFFER_BYTES = 256 * 1024;
/** A bound for servers that hang, so that the bench does not hang with them. */
const SILENCE_MS_MAX = 120_000;

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

export function createConnection(port: number): Connection {
  const reader = createAnswerReader();
  const buffer = Buffer.allocUnsafe(READ_BUFFER_BYTES);
  let socket: Socket | null = null;
  let waiting: Waiting | null = null;

  const drop = (): void => {
    socket?.destroy();
    socket = null;
  };
  const settle = (answer: Answer): void => {
    const { resolve } = waiting ?? {};
    waiting = null;
    if (answer.closes) drop();
    resolve?.(answer);
  };
  const fail = (error: Error): void => {
    const { reject } = waiting ?? {};
    waiting = null;
    drop();
    reject?.(error);
  };
  const take = (bytes: Buffer): void => {
    try {
      const answer = reader.take(bytes);
      if (answer !== null) settle(answer);
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)));
    }
  };

  const open = (): Socket => {
    const opened = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          take(buffer.subarray(0, length));
          return true;
        },
      },
    });
    opened.setTimeout(SILENCE_MS_MAX, () => {
      if (opened === socket) fail(new Error(`The server was silent for ${SILENCE_MS_MAX / 1000} s`));
    });
    opened.on('error', (error) => {
      if (opened === socket) fail(error);
    });
    opened.on('close', () => {
      if (opened !== socket) return;
      const last = reader.takeEnd();
      if (last !== null) settle(last);
      else if (waiting !== null) fail(new Error('The server closed the connection before its answer was whole'));
      socket = null;
    });
    return opened;
  };

  return {
    exchange(parts, keepBody) {
      if (waiting !== null) throw new Error('The connection is still waiting for an answer');
      reader.begin(keepBody);
      socket ??= open();
      const target = socket;
      return new Promise<Answer>((resolve, reject) => {
        waiting = { resolve, reject };
        if (parts.length > 1) target.cork();
        for (const part of parts) target.write(part);
        if (parts.length > 1) target.uncork();
      });
    },
    close: drop,
  };
}
