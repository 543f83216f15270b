/**
 * Tells failures of PostgreSQL that a retry can overcome from those that it cannot.
 *
 * Invariants: `connection-lost` covers every way in which a connection can end, so that a statement whose answer
 * was lost is never treated as one that failed.
 */

export type Failure =
  /** The connection could not be made, or it ended; a statement that was running may or may not have been committed. */
  | 'connection-lost'
  /** The server rolled the transaction back, for a conflict with others or a timeout; a retry may succeed. */
  | 'rolled-back'
  /** Anything else: a retry does not help; the statement or the server's state must be corrected. */
  | 'other';

/**
 * SQLSTATE codes (PostgreSQL's manual, Appendix A). 25006: the server became a standby in a failover; 53300: too many
 * connections; 57P0x: shutdown, crash, idle session timeout.
 */
const LOST_STATES = new Set(['25006', '53300', '57P01', '57P02', '57P03', '57P05']);
/** Serialisation failure, deadlock, lock timeout, statement timeout, transaction timeout. */
const ROLLED_BACK_STATES = new Set(['40001', '40P01', '55P03', '57014', '25P04']);
const SYSTEM_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOENT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETDOWN',
  'EHOSTDOWN',
  'EADDRNOTAVAIL',
]);
/** Messages of errors that pg throws without a code. */
const LOST_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (has encountered a connection error|was closed)|timeout expired)/;

/** Classifies an error that pg threw. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return 'other';
  if ('code' in error && typeof error.code === 'string') {
    const { code } = error;
    if (SYSTEM_CODES.has(code) || LOST_STATES.has(code) || /^08[0-9A-Z]{3}$/.test(code)) return 'connection-lost';
    if (ROLLED_BACK_STATES.has(code)) return 'rolled-back';
  }
  return LOST_MESSAGES.test(error.message) ? 'connection-lost' : 'other';
}
