/** An admitted Git request: what apps/git-http/handler.ts hands to the route's operation. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Uuid } from '../../core/kernel/ids.ts';
import type { Requirement } from '../../core/use-cases/callers/permission.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import type { FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import type { RefAnswers } from './advertise.ts';
import type { GitHttpContext, GitOperation } from './context.ts';
import type { PolledRequests } from './polled-requests.ts';
import type { PushResult } from './push-result.ts';

export interface GitRequest {
  readonly context: GitHttpContext;
  readonly answers: RefAnswers;
  readonly requests: PolledRequests;
  readonly request: IncomingMessage;
  readonly requestId: Uuid;
  readonly response: ServerResponse;
  readonly repository: FoundRepository;
  readonly principal: Principal;
  /** The route's requirement, which the principal meets. */
  readonly requirement: Requirement;
  readonly version: 0 | 1 | 2;
  /** Aborted when the client goes away before the answer is complete. */
  readonly signal: AbortSignal;
  readonly finished: {
    operation: GitOperation;
    sentBytes: number;
    receivedBytes: number;
    /** What became of a push, once it is known. */
    result: PushResult | null;
  };
}
