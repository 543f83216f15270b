/** The context of the REST API; apps/server/serving.ts creates it. */
import type { IncomingMessage } from 'node:http';
import type { Actor } from '../../core/kernel/envelope.ts';
import type { NewContents } from '../../core/ports/new-contents.ts';
import type { NewObjects } from '../../core/ports/new-objects.ts';
import type { PushContext } from '../../core/use-cases/pushing/push-refs.ts';
import type { HandlerContext } from '../front-door/handler-context.ts';
import type { BodyCache } from './body-cache.ts';

/** `PushContext`, `newObjects` and `newContents` are for pushes that the API makes. */
export interface ApiContext extends HandlerContext, PushContext {
  readonly newObjects: NewObjects;
  readonly newContents: NewContents;
  readonly bodies: BodyCache;
  /** The version of this program, for the OpenAPI document. */
  readonly version: string;
  /** Called for every finished request, for the metrics and the log. */
  readonly onFinished: (finished: FinishedApiRequest, request: IncomingMessage) => void;
}

export interface FinishedApiRequest {
  /** Null when no route matched. */
  readonly operationId: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string;
  readonly actor: Actor | null;
}
