/** Tells work for a client that the client is gone. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** The reason of the signal. Work that ends with it has not failed: nobody is there to read its answer. */
class ClientLeft extends Error {
  override readonly name = 'ClientLeft';
  constructor() {
    super('The client went away');
  }
}

/** Aborted when the connection closes before the answer was written, or has closed already. */
export function closedSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const leave = (): void => {
    if (!response.writableFinished) controller.abort(new ClientLeft());
  };
  if (response.closed) leave();
  else response.once('close', leave);
  return controller.signal;
}

/**
 * Whether work ended because its client left: its request broke off; or the error is the signal's reason, or has it as
 * a cause; or the answer's stream was closed with the connection, before its first bytes were asked for.
 */
export function isOfLeaving(error: unknown, { errored, socket }: Pick<IncomingMessage, 'errored' | 'socket'>): boolean {
  if (errored !== null) return true;
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof ClientLeft) return true;
  return socket.destroyed && error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}
