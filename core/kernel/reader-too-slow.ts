/**
 * Thrown when an answer ends because its client, or the clients of other answers, read too slowly: the service has no
 * room to keep it for its reader.
 *
 * Invariants: clients alone can cause this, so it is no error of a port, no outage, and no line in the log.
 */
export class ReaderTooSlow extends Error {
  override readonly name = 'ReaderTooSlow';
}
