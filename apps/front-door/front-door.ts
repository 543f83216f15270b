/** The context that REST and Git requests share; apps/server/request-contexts.ts creates it. */
import type { IncomingMessage } from 'node:http';
import type { Plans } from '../../core/account/plans.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { LastUse } from '../../core/ports/last-use.ts';
import type { Log } from '../../core/ports/log.ts';
import type { RateLimits } from '../../core/ports/rate-limits.ts';
import type { ChangesReader } from '../../core/ports/usage.ts';
import type { Context } from '../../core/runtime/execute.ts';
import type { TransferBudget } from '../../core/usage/budget.ts';
import type { TransferMeter } from '../../core/usage/meter.ts';
import type { Callers } from './callers.ts';
import type { FailedTokens } from './failed-tokens.ts';
import type { HeldBytes } from './held-bytes.ts';
import type { RequestTurns } from './request-turns.ts';
import type { SlowPushes } from './slow-pushes.ts';
import type { UnsentBudget } from './unsent-budget.ts';

export interface FrontDoor extends Context {
  readonly digest: Digest;
  readonly lastUse: LastUse;
  readonly transfer: TransferMeter;
  readonly transferBudget: TransferBudget;
  readonly rateLimits: RateLimits;
  readonly failedTokens: FailedTokens;
  readonly callers: Callers;
  readonly plans: Plans;
  readonly changes: ChangesReader;
  readonly bodyBudget: HeldBytes;
  readonly unsentBudget: UnsentBudget;
  readonly requestTurns: RequestTurns;
  readonly slowPushes: SlowPushes;
  /** The address of the request's peer; behind a trusted proxy, the address of the proxy's client. */
  readonly clientAddress: (request: IncomingMessage) => string;
  /** Resolves to the vault reference of an address, or null when the address is not recorded. */
  readonly sourceAddressRef: (account: AccountId, address: string) => Promise<string | null>;
  readonly log: Log;
  /** Counts a request that failed since the log lacks, or has changed, what was read of it. Its line is in the log. */
  readonly onDiverged: () => void;
}
