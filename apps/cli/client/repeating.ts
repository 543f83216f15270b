/**
 * Sends a request again that failed in passing. One that is twice as good as once (RFC 9110, section 9.2.2) is repeated
 * after a connection that broke or was silent too long, and after an answer that says so; any other only where the
 * connection was refused, so that nothing was sent.
 *
 * Invariants: a request is repeated at most `REPEATS_MAX` times, and never earlier than the service asks for.
 */
import { readText, UnreachableError, type WireAnswer } from './transport.ts';

const REPEATS_MAX = 4;
const WAIT_SECONDS_MAX = 60;
const FIRST_WAIT_SECONDS = 0.5;

/** What proxies answer for a service that they do not reach, and a service that cannot answer now. */
export const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);

interface Repeatable {
  readonly method: string;
  /** Whether a status is one that passes. 429 always is. */
  readonly passes: (status: number) => boolean;
  /** Is told of each wait. The status is null where no answer came. */
  readonly onWait?: ((seconds: number, status: number | null) => void) | undefined;
}

/** Sends it until it has an answer that does not pass, or was repeated often enough; then it ends as the last try. */
export async function sendRepeatedly(
  { method, passes, onWait }: Repeatable,
  send: () => Promise<WireAnswer>,
): Promise<WireAnswer> {
  const isIdempotent = IDEMPOTENT.has(method.toUpperCase());
  let mayBeDone = false;
  for (let repeats = 0; ; repeats += 1) {
    const tried = await tryOnce(send);
    const status = 'answer' in tried ? tried.answer.status : null;
    if (status === 404 && mayBeDone && method.toUpperCase() === 'DELETE') {
      await drain(tried);
      return DELETED;
    }
    const isRefused = 'error' in tried && tried.error.kind === 'refused';
    const isPassing =
      status === null ? 'error' in tried && tried.error.kind === 'broken' : status === 429 || passes(status);
    const seconds = secondsAfter(tried, FIRST_WAIT_SECONDS * 2 ** repeats);
    if (repeats === REPEATS_MAX || seconds > WAIT_SECONDS_MAX || !(isRefused || (isPassing && isIdempotent))) {
      if ('error' in tried) throw tried.error;
      return tried.answer;
    }
    mayBeDone ||= isPassing && status !== 429;
    await drain(tried);
    onWait?.(seconds, status);
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

/** What a DELETE has come to whose first try was carried out, though its answer was lost. */
const DELETED: WireAnswer = { status: 204, header: () => null, body: bytesOf('') };

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

/** Reads the whole body, so that one which breaks off is a failure of the try. */
export async function withWholeBody(answer: WireAnswer, bytesMax?: number): Promise<WireAnswer> {
  return { ...answer, body: bytesOf(await readText(answer.body, bytesMax)) };
}

type Tried = { readonly answer: WireAnswer } | { readonly error: UnreachableError };

async function tryOnce(send: () => Promise<WireAnswer>): Promise<Tried> {
  try {
    return { answer: await send() };
  } catch (error) {
    if (error instanceof UnreachableError) return { error };
    throw error;
  }
}

/** Reads what is left of an answer that counts no more, whether or not it ends well. */
async function drain(tried: Tried): Promise<void> {
  if ('answer' in tried) await readText(tried.answer.body).catch(() => '');
}

function secondsAfter(tried: Tried, otherwise: number): number {
  return ('answer' in tried ? retryAfter(tried.answer) : null) ?? otherwise;
}

/** The seconds of `Retry-After`, which names them or a date (RFC 9110, section 10.2.3); null if it names neither. */
export function retryAfter(answer: WireAnswer): number | null {
  const text = answer.header('retry-after') ?? '';
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(1, Math.ceil(seconds));
}
