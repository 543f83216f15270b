/**
 * Which failures of PostgreSQL pass by themselves.
 *
 * Must stay true: `connection-lost` covers every way a connection can end, so that a statement whose answer did
 * not come is never taken for one that failed.
 */

export type Failure =
  /** The connection could not be made or ended; a statement under way may or may not have been committed. */
  | 'connection-lost'
  /** The server rolled the transaction back because of others: the same statement may succeed later. */
  | 'rolled-back'
  /** Anything else: the statement itself, or the server's state, needs someone to act. */
  | 'other';

/** Appendix A of PostgreSQL's manual. 25006: after a failover this is a standby; 57P0x: shutdown and crash. */
const LOST_STATES = new Set(['25006', '53300', '57P01', '57P02', '57P03', '57P05']);
/** Serialisation failure, deadlock, lock timeout, statement timeout, transaction timeout. */
const ROLLED_BACK_STATES = new Set(['40001', '40P01', '55P03', '57014', '25P04']);
const SYSTEM_CODES = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'ENOENT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['ENOTFOUND', 'EAI_AGAIN', 'ENETDOWN', 'EHOSTDOWN', 'EADDRNOTAVAIL'],
]);
/** What pg throws without a code. */
const LOST_MESSAGES =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (has encountered a connection error|was closed)|timeout expired)/;

/** Classifies what pg threw. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return 'other';
  if ('code' in error && typeof error.code === 'string') {
    const { code } = error;
    if (SYSTEM_CODES.has(code) || LOST_STATES.has(code) || /^08[0-9A-Z]{3}$/.test(code)) return 'connection-lost';
    if (ROLLED_BACK_STATES.has(code)) return 'rolled-back';
  }
  return LOST_MESSAGES.test(error.message) ? 'connection-lost' : 'other';
}
