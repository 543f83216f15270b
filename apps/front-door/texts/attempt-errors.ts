/**
 * The one table from the code of a delivery attempt's error to the message that the webhook's owner sees.
 *
 * Invariants: no message repeats text of the receiver or of a library.
 */
import type { OutgoingFailure } from '../../../core/kernel/exchange.ts';
import type { TargetFault } from '../../../core/kernel/target-fault.ts';
import type { AttemptRow, WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import type { NotSent } from '../../../core/webhook-delivery/attempt.ts';

type AttemptError = OutgoingFailure | NotSent | TargetFault | 'status-not-2xx';

const MESSAGES: { readonly [Error in AttemptError]: string } = {
  'status-not-2xx': 'The receiver did not answer 2xx',
  'timed-out': 'The receiver did not answer within 30 seconds',
  'name-not-found': "The receiver's name was not found",
  'name-lookup-failed': "The receiver's name could not be looked up",
  'connection-failed': 'The receiver could not be reached',
  'certificate-invalid': "The receiver's certificate is not valid",
  'tls-failed': 'No secure connection could be made to the receiver',
  'connection-lost': 'The receiver closed the connection before it answered',
  'answer-malformed': "The receiver's answer is no HTTP",
  'answer-headers-too-large': "The receiver's answer has too many headers",
  'answer-too-large': "The receiver's answer is too large",
  'webhook-inactive': 'The webhook is not active',
  'webhook-deleted': 'The webhook was deleted',
  'unexpected-error': 'The delivery failed unexpectedly',
  'url-malformed': 'The URL is not one',
  'url-too-long': 'The URL is too long',
  'url-not-https': 'The URL does not start with https://',
  'url-with-credentials': 'The URL holds a username or a password',
  'own-host': 'The URL leads to this service',
  'address-not-public': 'The URL leads to an address that is not public',
  'peer-not-checked': 'The URL leads to an address that is not public',
};

/** Returns the message, with the attempt's detail in brackets if it has one; null for a success. */
export function attemptError({ error, detail }: Pick<AttemptRow, 'error' | 'detail'>): string | null {
  if (error === null) return null;
  const known: { readonly [error: string]: string } = MESSAGES;
  const message = (Object.hasOwn(known, error) ? known[error] : undefined) ?? error;
  return detail === null ? message : `${message} (${detail})`;
}

/** Says why a delivery has no attempt yet in this series, and when it gets one; null if nothing holds it up. */
export function deferralText({ status, deferredUntil }: WebhookDeliveryRow): string | null {
  if (status !== 'PENDING' || deferredUntil === null) return null;
  return `The account's deliveries of the hour (deliveries_per_hour of its plan) are used up: this one waits until ${deferredUntil}`;
}
