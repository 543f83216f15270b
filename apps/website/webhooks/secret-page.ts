/** The page that shows a webhook's new secret, once. */
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Content, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { PersonVisit } from '../layout/visit.ts';

export interface ShownSecret {
  readonly title: string;
  readonly text: Content;
  readonly secret: string;
  /** Where the person goes on. */
  readonly next: string;
}

/** The secret is in this answer alone: it is neither stored in clear nor shown again. */
export function showSecret(visit: PersonVisit, { title, text, secret, next }: ShownSecret): SiteAnswer {
  const content = html`<h1>${title}</h1><p>${text}</p>
<p>This is the secret of its signatures. It is not shown again.</p>
${copyBox(secret, 'the secret')}
<p class="soft">Your server computes the HMAC-SHA256 of each request's raw body with this secret, in hex, and compares it with the header <code>X-Service-Signature</code>.</p>
<div class="row"><a class="button main" href="${next}">I have copied it</a></div>`;
  return showPage(page(visit, { title, width: 'narrow' }, content), 200, { 'cache-control': 'no-store' });
}
