/**
 * What became of an HTTP request to a URL that a user chose.
 *
 * Invariants: it holds neither the URL, nor a header, nor the text of a library's error: the URL is its owner's secret.
 */
import type { TargetFault } from './target-fault.ts';

/** Why a request to an allowed target got no status with its headers. A retry may succeed. */
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

export type Exchange =
  | {
      readonly outcome: 'answered';
      /** 200 to 599: a redirect is an answer, and is never followed. */
      readonly status: number;
      /** What was read of the body. */
      readonly body: Uint8Array;
      /**
       * `whole`: that is all. `bounded`: it was longer than `answerBytesMax`. `cut`: it broke off, was not framed as
       * HTTP, or did not end in time.
       */
      readonly extent: 'whole' | 'bounded' | 'cut';
    }
  /** No byte of the request was sent. */
  | { readonly outcome: 'refused'; readonly fault: TargetFault }
  | {
      readonly outcome: 'failed';
      readonly failure: OutgoingFailure;
      /** The status, if it arrived with headers that are refused; else null. */
      readonly status: number | null;
      /** The platform's error code, such as `ECONNREFUSED`; never a sentence. */
      readonly detail: string | null;
    };
