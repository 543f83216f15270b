/**
 * The header `traceparent` of W3C Trace Context, as bytes from a stranger and as text to send.
 *
 * Invariants: a header in another form is as good as none.
 */
import { isSpanContextValid, type SpanContext } from '@opentelemetry/api';

/** A later version may say more behind the flags. There is no version ff. */
const FORM = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.{0,500})?$/;

export function parseTraceparent(header: string): SpanContext | null {
  const [, version = '', traceId = '', spanId = '', flags = '', more] = FORM.exec(header) ?? [];
  if (version === '00' && more !== undefined) return null;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  return isSpanContextValid(context) ? context : null;
}

export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 1).toString(16).padStart(2, '0')}`;
}
