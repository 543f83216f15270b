/**
 * Requests to addresses that users choose: webhooks today, buckets and issuers of identity tokens later.
 *
 * Must stay true: nothing reaches an address that the rules of outgoing requests forbid, whatever the URL or its name
 * server says (security, Outgoing requests); no result holds the URL, a header or a word of a library, since a
 * URL is a secret of its owner's.
 */

/** Why a URL may not be a target at all; trying again does not help while it stands. */
export type TargetFault =
  | 'url-malformed'
  | 'url-too-long'
  | 'url-not-https'
  | 'url-with-credentials'
  | 'own-host'
  | 'address-not-public'
  /** The connection's other end is none of the addresses that were checked. */
  | 'peer-not-checked';

/** Why a request to an allowed target brought no answer; another time it may. */
export type OutgoingFailure =
  | 'timed-out'
  | 'name-not-found'
  | 'name-lookup-failed'
  | 'connection-failed'
  | 'certificate-invalid'
  | 'tls-failed'
  | 'connection-lost'
  | 'answer-malformed'
  | 'answer-headers-too-large'
  | 'answer-too-large';

export interface OutgoingRequest {
  readonly url: string;
  readonly method: 'GET' | 'POST';
  /** Names in lower case. `host` and those of the body's framing are not the caller's. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | null;
  /** From the lookup of the name to the last byte of the answer. */
  readonly spanMs: number;
  /** What is kept of the answer's body; the rest is not read. */
  readonly answerBytesMax: number;
}

export type Exchange =
  | {
      readonly outcome: 'answered';
      /** 200 to 599: redirects are answers, and are never followed. */
      readonly status: number;
      readonly body: Uint8Array;
      /** Whether the body went on beyond `answerBytesMax`. */
      readonly truncated: boolean;
    }
  /** No byte of the request was sent. */
  | { readonly outcome: 'refused'; readonly fault: TargetFault }
  | {
      readonly outcome: 'failed';
      readonly failure: OutgoingFailure;
      /** The status, where the answer broke off after it. */
      readonly status: number | null;
      /** The platform's code, such as `ECONNREFUSED`; never a sentence. */
      readonly detail: string | null;
    };

export interface OutgoingRequests {
  /**
   * Why the URL may not be a target now, or null. Looks its name up; one that cannot be found now is no fault: it
   * is checked again at every `send`.
   */
  check(url: string): Promise<TargetFault | null>;
  /** One request, checked anew, on a connection of its own. Never rejects for anything that the other side did. */
  send(request: OutgoingRequest): Promise<Exchange>;
}
