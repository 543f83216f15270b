/** What the API works with; made by apps/server. */
import type { IncomingMessage } from 'node:http';
import type { Plans } from '../../core/account/plans.ts';
import type { Actor } from '../../core/kernel/envelope.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { DeliveryStore } from '../../core/ports/delivery-store.ts';
import type { Digest } from '../../core/ports/digest.ts';
import type { Reach } from '../../core/ports/failpoints.ts';
import type { LastUse } from '../../core/ports/last-use.ts';
import type { Log } from '../../core/ports/log.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { ReadModels } from '../../core/ports/read-models.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { UsageReader } from '../../core/ports/usage.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { Context } from '../../core/runtime/execute.ts';
import type { TransferMeter } from '../../core/use-cases/transfer-meter.ts';

export interface ApiContext extends Context {
  readonly digest: Digest;
  readonly plans: Plans;
  readonly vault: Vault;
  readonly outgoing: OutgoingRequests;
  readonly deliveries: DeliveryStore;
  readonly readModels: ReadModels;
  readonly objects: ObjectDatabase;
  readonly usage: UsageReader;
  readonly lastUse: LastUse;
  readonly transfer: TransferMeter;
  readonly reach: Reach;
  /** A fresh secret of an access token, in the form of interface.md. */
  readonly newTokenSecret: () => string;
  /** What a device login is told apart by: a code for people, and a secret for its polls. */
  readonly newUserCode: () => string;
  readonly newDeviceSecret: () => string;
  readonly newWebhookSecret: () => string;
  /** The address a request came from, behind trusted proxies that of their client. */
  readonly clientAddress: (request: IncomingMessage) => string;
  /** Vault reference of an address, or null when it is not recorded. */
  readonly sourceAddressRef: (account: AccountId, address: string) => Promise<string | null>;
  /** Without a trailing slash; asked for at each use, since a port of 0 is known only once the server listens. */
  readonly addresses: () => { readonly baseUrl: string; readonly webUrl: string };
  /** `<version>` of this program, as the OpenAPI document states it. */
  readonly version: string;
  readonly log: Log;
  /** Told of every finished request, for the metrics. */
  readonly onFinished: (finished: FinishedApiRequest) => void;
}

export interface FinishedApiRequest {
  /** Null where no route was met. */
  readonly operationId: string | null;
  readonly method: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string;
  readonly actor: Actor | null;
}
