/**
 * Outgoing requests (core/ports/outgoing-requests.ts) by undici: applies the rules of SECURITY.md in their order.
 *
 * Invariants: the same function checks a URL when it is saved and at every attempt, and the connection uses only
 * checked addresses. undici, with more than 100 modules, is loaded by the first request that has a place to go to: many
 * servers never send one, and all of them start sooner.
 */
import type { Exchange } from '../../core/kernel/exchange.ts';
import type { TargetFault } from '../../core/kernel/target-fault.ts';
import type { OutgoingRequest, OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import { type Dial, dial, openConnection } from './connection.ts';
import { failed } from './failures.ts';
import { createTargetCheck, type TargetCheck, type TargetCheckOptions } from './target-check.ts';

/** How long the host of a URL is looked up when the URL is saved; a slower one is checked at its first use. */
export const TARGET_CHECK_SPAN_MS = 5_000;

export interface HttpEgressOptions extends TargetCheckOptions {
  /** Certificate authorities in PEM; when absent, Node's and those of NODE_EXTRA_CA_CERTS. */
  readonly authorities?: readonly string[];
  readonly dial?: Dial;
}

export function createHttpEgress(options: HttpEgressOptions): OutgoingRequests {
  const { authorities } = options;
  const check = createTargetCheck(options);
  const checkEndpoint = createTargetCheck({ ...options, httpAllowed: options.privateAllowed });

  async function send(request: OutgoingRequest, signal: AbortSignal): Promise<Exchange> {
    const checked = await check(request.url, signal);
    if ('fault' in checked) return { outcome: 'refused', fault: checked.fault };
    if ('unresolved' in checked) return failed(checked.unresolved, checked.detail);
    const { exchange } = await import('./exchange.ts');
    const connection = await openConnection({ ...checked, dial: options.dial ?? dial, authorities, signal });
    return 'outcome' in connection ? connection : exchange(connection, checked.target, request, signal);
  }

  return {
    check: (url) => faultOf(check, url),
    checkEndpoint: (url) => faultOf(checkEndpoint, url),
    async send(request) {
      const ended = await withTimeout(request.spanMs, (signal) => send(request, signal), request.signal);
      return ended === TIMED_OUT ? failed('timed-out') : ended;
    },
  };
}

async function faultOf(check: TargetCheck, url: string): Promise<TargetFault | null> {
  const checked = await withTimeout(TARGET_CHECK_SPAN_MS, (signal) => check(url, signal));
  return checked !== TIMED_OUT && 'fault' in checked ? checked.fault : null;
}

const TIMED_OUT = Symbol('timed out');

/** Resolves with the work's result, or `TIMED_OUT` when it rejects after the time was up or the caller cancelled it. */
async function withTimeout<Result>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<Result>,
  cancelled?: Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>,
): Promise<Result | typeof TIMED_OUT> {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  const timer = setTimeout(abort, timeoutMs);
  cancelled?.addEventListener('abort', abort, { once: true });
  if (cancelled?.aborted === true) abort();
  try {
    return await work(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) return TIMED_OUT;
    throw error;
  } finally {
    clearTimeout(timer);
    cancelled?.removeEventListener('abort', abort);
  }
}
