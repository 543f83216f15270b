/**
 * HTTP requests to URLs that users choose: webhooks, and later issuers of identity tokens. Also judges the endpoints of
 * buckets.
 *
 * Invariants: no connection reaches an address that the rules of outgoing requests forbid, whatever the URL or the
 * DNS answers say (SECURITY.md, What holds). No result holds the URL, a header or the text of a library's error: the
 * URL is its owner's secret.
 */
import type { Exchange } from '../kernel/exchange.ts';
import type { TargetFault } from '../kernel/target-fault.ts';

export interface OutgoingRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  /** Names in lower case. The caller must not set `host` or the headers that frame the body. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** The time limit, from the DNS lookup to the last byte of the answer. */
  readonly spanMs: number;
  /** How much of the answer's body is kept; the rest is not read. */
  readonly answerBytesMax: number;
  /** When aborted, the request fails like one whose time is up. */
  readonly signal?: AbortSignal;
}

export interface OutgoingRequests {
  /**
   * Returns why the URL may not be a target now, or null. Looks its host up; a failed lookup is no fault, because
   * every `send` checks again.
   */
  check(url: string): Promise<TargetFault | null>;
  /**
   * As `check`, for the endpoint of a bucket, which may also be `http://` where the operator allows private targets.
   */
  checkEndpoint(url: string): Promise<TargetFault | null>;
  /** Checks the URL again and sends one request on its own connection. Never rejects because of the other side. */
  send(request: OutgoingRequest): Promise<Exchange>;
}
