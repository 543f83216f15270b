/** A Git request that passed every check of the handler, as the operations get it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Cause } from '../../core/kernel/envelope.ts';
import type { Bearer } from '../../core/use-cases/authenticate.ts';
import type { FoundRepository } from '../../core/use-cases/accounts/repositories.ts';
import type { RefAnswers } from './advertise.ts';
import type { GitHttpContext, GitOperation } from './context.ts';

export interface GitRequest {
  readonly context: GitHttpContext;
  readonly answers: RefAnswers;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly repository: FoundRepository;
  readonly bearer: Bearer;
  readonly cause: Cause;
  readonly version: 0 | 1 | 2;
  /** Aborted when the client goes away before the answer is complete. */
  readonly signal: AbortSignal;
  readonly finished: { operation: GitOperation; sentBytes: number; receivedBytes: number };
}
