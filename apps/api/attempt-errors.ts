/**
 * The one table from the code of an attempt's error to the words its owner sees.
 *
 * Must stay true: no word of the receiver's, nor of a library, is in them.
 */
import type { OutgoingFailure, TargetFault } from '../../core/ports/outgoing-requests.ts';
import type { AttemptRow } from '../../core/ports/read-models.ts';
import type { NotSent } from '../../core/webhook-delivery/attempt.ts';

type AttemptError = OutgoingFailure | NotSent | TargetFault | 'status-not-2xx';

const WORDS: { readonly [Error in AttemptError]: string } = {
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
  'url-with-credentials': 'The URL holds a user name or a password',
  'own-host': 'The URL leads to this service',
  'address-not-public': 'The URL leads to an address that is not public',
  'peer-not-checked': 'The URL leads to an address that is not public',
};

/** Null for a success. */
export function attemptError({ error, detail }: Pick<AttemptRow, 'error' | 'detail'>): string | null {
  if (error === null) return null;
  const known: { readonly [error: string]: string } = WORDS;
  const words = Object.hasOwn(known, error) ? known[error] : undefined;
  return detail === null ? (words ?? error) : `${words ?? error} (${detail})`;
}
