/**
 * The pages that say what went wrong.
 *
 * Invariants: a page about a fault names the request id and nothing of the fault itself. What somebody may not see
 * gets the same page as what does not exist.
 */
import type { RateRefusal } from '../../front-door/callers.ts';
import { rateRefusalText } from '../../front-door/texts/denials.ts';
import { type SiteAnswer, showPage } from './answer.ts';
import { type Content, type Html, html } from './html.ts';
import { page } from './page.ts';
import type { Visit } from './visit.ts';

export interface Problem {
  readonly status: number;
  readonly title: string;
  readonly text: Content;
  /** What stands below the text. */
  readonly more?: Content;
  readonly headers?: Readonly<Record<string, string>>;
  /** Where to go from here; the start page by default. */
  readonly back?: { readonly path: string; readonly label: string };
}

const START = { path: '/', label: 'the start page' };

export function showProblem(visit: Visit, problem: Problem): SiteAnswer {
  const { status, title, headers = {} } = problem;
  return showPage(page(visit, { title, width: 'middle' }, problemContent(visit, problem)), status, headers);
}

/** What the page of a problem says, for pages with a head of their own. */
export function problemContent(
  { requestId }: Pick<Visit, 'requestId'>,
  { title, text, more = null, back = START }: Problem,
): Html {
  return html`<h1>${title}</h1><p>${text}</p>${more}
<p class="soft">If you ask for help, name this request: <code>${requestId}</code></p>
<div class="row"><a class="button" href="${back.path}">Go to ${back.label}</a></div>`;
}

export function notFound(visit: Visit): SiteAnswer {
  const text =
    visit.person === null
      ? html`Nothing is at this address, or only somebody who is <a href="/sign-in">signed in</a> may see it.`
      : 'Nothing is at this address, or your account may not see it. Names of repositories are written with their owner first.';
  return showProblem(visit, { status: 404, title: 'Page not found', text });
}

/** `methods` are those that the address takes. */
export function methodNotAllowed(visit: Visit, methods: readonly string[]): SiteAnswer {
  const text = methods.includes('GET')
    ? 'A page is at this address, and it does not take this request. Nothing was changed. Open the address in the browser to see the page.'
    : 'Only a form of this site sends requests to this address. Nothing was changed. Go back to the page that you came from, and use its button.';
  return showProblem(visit, { status: 405, title: 'Method not allowed', text, headers: { allow: methods.join(', ') } });
}

/** For a person who asks for more than is theirs. */
export function tooOften(visit: Visit, refusal: RateRefusal): SiteAnswer {
  return showProblem(visit, tooOftenProblem(refusal));
}

export function tooOftenProblem(refusal: RateRefusal): Problem {
  const headers = { 'retry-after': String(refusal.waitSeconds) };
  const text = `${rateRefusalText(refusal)}. Nothing was changed.`;
  return { status: 429, title: 'Too many requests', text, headers };
}
