/**
 * Sends an answer about refs.
 *
 * Invariants: a client that reads slowly keeps an answer in memory only within the memory for answers; without room
 * there, or of a large one, it keeps the piece that it reads. So such an answer is never refused.
 */
import { holdUnsent } from '../front-door/unsent-budget.ts';
import type { RefAnswer } from './advertise.ts';
import { sendBytes, write, writeHead } from './answer.ts';
import type { GitRequest } from './git-request.ts';

export async function sendRefs(git: GitRequest, contentType: string, { whole, pieces }: RefAnswer): Promise<void> {
  const { context, request, response, principal, finished } = git;
  if (whole !== null && holdUnsent(context.unsentBudget, response, { account: principal.account }, whole) === null) {
    finished.sentBytes = whole.length;
    sendBytes(git, contentType, whole);
    return;
  }
  // Its length is not known before all of it was made.
  writeHead(git, 200, ['Content-Type', contentType]);
  if (request.method !== 'HEAD') {
    for (const piece of pieces()) {
      finished.sentBytes += piece.length;
      if (!(await write(response, piece))) return;
    }
  }
  response.end();
}
