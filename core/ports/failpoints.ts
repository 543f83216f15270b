/**
 * Named places where a test may make the process die: the steps of a push, of moving a log, of a delivery, and those
 * between two appends of one command.
 *
 * Must stay true: in production every one is a call that does nothing.
 */

export const FAULT_POINTS = [
  'push-pack-received',
  'push-layer-stored',
  'push-parts-appended',
  'push-appended',
  'push-installed',
  'push-answered',
  'repository-closed',
  'account-username-claimed',
  'account-created',
  'log-export-written',
  'log-import-begun',
  'log-import-appended',
  'log-import-verified',
  'account-erased',
  'webhook-payload-stored',
  'webhook-delivery-requested',
  'webhook-attempt-claimed',
  'webhook-attempt-sent',
  'webhook-attempt-recorded',
  'webhook-wait-over',
  'webhook-attempt-due',
  'device-login-claimed',
] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number];

/** Called on reaching a point. */
export type Reach = (point: FaultPoint) => Promise<void>;
