/** What the Git endpoints work with; made by apps/server. */
import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import type { Plans } from '../../core/account/plans.ts';
import type { Actor } from '../../core/kernel/envelope.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { LastUse } from '../../core/ports/last-use.ts';
import type { PushContext } from '../../core/use-cases/pushing/push-refs.ts';
import type { TransferMeter } from '../../core/use-cases/transfer-meter.ts';

export interface GitHttpContext extends PushContext {
  readonly plans: Plans;
  readonly lastUse: LastUse;
  readonly transfer: TransferMeter;
  /** The address a request came from, behind trusted proxies that of their client. */
  readonly clientAddress: (request: IncomingMessage) => string;
  /** Vault reference of the address a request came from, or null when it is not recorded. */
  readonly sourceAddressRef: (account: AccountId, address: string) => Promise<string | null>;
  /** `strata/<version>`: what clients see as the server's agent. */
  readonly agent: string;
  readonly log: Logger;
  /** Told of every finished request, for the metrics. */
  readonly onFinished: (finished: FinishedRequest) => void;
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
}
