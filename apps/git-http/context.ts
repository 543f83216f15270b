/** The context of the Git endpoints; apps/server/serving.ts creates it. */
import type { IncomingMessage } from 'node:http';
import type { Actor } from '../../core/kernel/envelope.ts';
import type { PastRepositories } from '../../core/use-cases/as-of/repository-as-of.ts';
import type { PushContext } from '../../core/use-cases/pushing/push-refs.ts';
import type { WarmClones } from '../../core/use-cases/reading/prepare-shallow-clones.ts';
import type { FrontDoor } from '../front-door/front-door.ts';
import type { RefAnswers } from './advertise.ts';
import type { PushResult } from './push-result.ts';

export interface GitHttpContext extends PushContext, FrontDoor {
  readonly pastRepositories: PastRepositories;
  readonly refAnswers: RefAnswers;
  readonly warmClones: Pick<WarmClones, 'asked'>;
  /** Called for every finished request, for the metrics and the log. */
  readonly onFinished: (finished: FinishedRequest, request: IncomingMessage) => void;
}

export type GitOperation = 'info-refs' | 'ls-refs' | 'fetch' | 'push' | 'none';

export interface FinishedRequest {
  readonly operation: GitOperation;
  readonly status: number;
  readonly durationMs: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly requestId: string;
  readonly actor: Actor | null;
  /** What became of a push; null for any other request. */
  readonly result: PushResult | null;
}
