/**
 * The pages that answer thrown errors.
 *
 * Invariants: no page repeats the error's message. A refused form says what to do next, since its sender may be a
 * person whose page was old.
 */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { ReaderTooSlow } from '../../core/kernel/reader-too-slow.ts';
import { BodyNotHeld } from '../front-door/body-budget.ts';
import { isOfLeaving } from '../front-door/closed-signal.ts';
import { logFault } from '../front-door/fault-log.ts';
import { NO_ROOM_FOR_READER } from '../front-door/texts/denials.ts';
import { outageOf } from '../front-door/texts/outages.ts';
import { currentVisit, fieldsSent, type Serving, send } from './binding.ts';
import { nextPath } from './layout/answer.ts';
import { shownText } from './layout/forms.ts';
import { html } from './layout/html.ts';
import { type Problem, showProblem } from './layout/problems.ts';
import { CrossSiteForm } from './sessions/cross-site.ts';

export function answerFault(
  serving: Serving,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const problem = problemOf(serving, error, request);
  return send(serving, reply, showProblem(currentVisit(serving, request, reply), problem));
}

const OLD_FORM: Problem = {
  status: 403,
  title: 'This form is out of date',
  text: 'You signed in or out since the page was opened, or your browser refuses cookies. Nothing was changed. Load the page again, and send the form once more.',
};
const SIGNED_OUT_FORM: Problem = {
  ...OLD_FORM,
  text: 'You are not signed in any more, or your browser refuses cookies. Nothing was changed. Sign in, and send the form once more.',
};
const FOREIGN_FORM: Problem = {
  status: 403,
  title: 'This form came from another site',
  text: 'Another site tried to send this form in your name. Nothing was changed.',
};
const UNREADABLE: Problem = {
  status: 400,
  title: 'This form cannot be read',
  text: 'The form was not sent as a page of this site sends it. Nothing was changed.',
};
const TOO_LARGE: Problem = {
  status: 413,
  title: 'This form is too large',
  text: 'The form holds more than this page takes. Nothing was changed.',
};

/** Shows what was written, which the browser need not have any more, and leads back to the page of the form. */
function oldForm({ context }: Serving, request: FastifyRequest): Problem {
  const page = pageOfForm(request, context.addresses().webUrl);
  const isSignedIn = (request.identity?.known ?? null) !== null;
  // The pages of who is not signed in.
  const isOpen = isSignedIn || (page !== null && /^\/sign-(?:in|up)(?![^/?])/.test(page));
  const problem = isOpen ? OLD_FORM : SIGNED_OUT_FORM;
  const back = wayBack(page, isOpen);
  const keeps = request.routeOptions.config.form?.keeps;
  const value = keeps === undefined ? '' : fieldsSent(request).text(keeps);
  if (value === '') return { ...problem, back };
  return { ...problem, back, more: shownText({ name: 'kept', label: 'What you wrote, to copy', value }) };
}

/** The path of the page that the form was on, as the browser names it; null for another site. */
function pageOfForm({ headers }: FastifyRequest, webUrl: string): string | null {
  const page = URL.parse(headers.referer ?? '');
  if (page === null || page.origin !== new URL(webUrl).origin) return null;
  return nextPath(`${page.pathname}${page.search}`);
}

function wayBack(page: string | null, isOpen: boolean): NonNullable<Problem['back']> {
  if (!isOpen) {
    const next = page === null ? '' : `?next=${encodeURIComponent(page)}`;
    return { path: `/sign-in${next}`, label: 'the sign-in page' };
  }
  return page === null ? { path: '/', label: 'the start page' } : { path: page, label: 'the page of the form' };
}

function problemOf(serving: Serving, error: FastifyError, request: FastifyRequest): Problem {
  const { context } = serving;
  if (error instanceof CrossSiteForm) return FOREIGN_FORM;
  if (error instanceof BodyNotHeld) {
    const { status, text, waitSeconds } = error.refusal;
    const headers = { 'retry-after': String(waitSeconds), connection: 'close' };
    return { status, title: 'Not now', text: `${text}. Nothing was changed.`, headers };
  }
  if (error instanceof ReaderTooSlow) {
    const headers = { 'retry-after': String(NO_ROOM_FOR_READER.waitSeconds) };
    return { status: 429, title: 'Not now', text: `${NO_ROOM_FOR_READER.text}.`, headers };
  }
  const { id: requestId } = request;
  const operation = request.routeOptions.url ?? null;
  const outage = outageOf(error);
  if (outage !== null) {
    logFault(context, error, { requestId, operation, status: outage.status });
    if (outage.status === 500) return { status: 500, title: 'This cannot be shown', text: `${outage.message}.` };
    const headers = { 'retry-after': String(outage.retryAfterSeconds) };
    return { status: 503, title: 'Not available now', text: `${outage.message}.`, headers };
  }
  switch (error.code) {
    case 'FST_CSRF_MISSING_SECRET':
    case 'FST_CSRF_INVALID_TOKEN':
      return oldForm(serving, request);
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return TOO_LARGE;
  }
  // What else Fastify finds wrong with a request; and a connection that the client closed, where nobody reads this.
  const isTheirs = error.statusCode !== undefined && error.statusCode < 500;
  if (isTheirs || isOfLeaving(error, request.raw)) return UNREADABLE;
  logFault(context, error, { requestId, operation, status: 500 });
  return {
    status: 500,
    title: 'Something went wrong',
    text: html`The fault is ours, and it was noted. Try again; if it stays, tell who runs this service.`,
  };
}
