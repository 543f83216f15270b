/** Tells work for a client that the client is gone. */
import type { ServerResponse } from 'node:http';

/** Aborted when the connection closes before the answer was written. */
export function closedSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) controller.abort(new Error('The client went away'));
  });
  return controller.signal;
}
