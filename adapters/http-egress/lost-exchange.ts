/** Translates the errors of undici into the outcomes that the port names. */
import { errors } from 'undici';
import { codeOf, type Failed, failed } from './failures.ts';

/** The outcome of an exchange that undici ended with this error before a status and headers had arrived. */
export function lostExchange(error: Error): Failed {
  const code = codeOf(error);
  if (error instanceof errors.HeadersOverflowError) return failed('answer-headers-too-large', code);
  if (isMalformed(error)) return failed('answer-malformed', code);
  return failed(code?.startsWith('ERR_SSL_') === true ? 'tls-failed' : 'connection-lost', code);
}

/** undici's errors for a status of 100 and for an unrequested upgrade differ from a closed socket's by message only. */
const MALFORMED = new Set(['bad response', 'bad upgrade']);

function isMalformed(error: Error): boolean {
  if (error instanceof errors.SocketError) return MALFORMED.has(error.message);
  return error instanceof errors.HTTPParserError || error instanceof errors.ResponseContentLengthMismatchError;
}
