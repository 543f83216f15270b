/**
 * Creating an access token: the form, and the page that shows the secret.
 *
 * Invariants: the secret stands in one answer and nowhere else, which no browser keeps. A form makes at most one
 * token, so that loading the answer again neither shows the secret again nor makes a second token.
 */
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { createAccessToken } from '../../../core/use-cases/tokens/access-tokens.ts';
import { refuseBeyondTokens } from '../../../core/use-cases/tokens/list-access-tokens.ts';
import type { SiteContext } from '../context.ts';
import { type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type FieldErrors, type Fields, hiddenField, postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { choiceSent, errorsOfRefusal, newChoice, parseChoice, type TokenChoice, tokenFields } from './token-form.ts';
import { expiryText, grantsText, repositoriesText } from './words.ts';

const FORM_ID = 'form_id';
/** The session remembers this many of the forms that were sent, each by its id of 36 characters. */
const FORMS_KEPT = 20;
const KEPT_AS = 'token-forms';

export async function showCreate(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const own = await listOwnRepositories(context, visit.person.account);
  return createPage(context, visit, { own, choice: newChoice(''), errors: {} });
}

interface CreateState {
  readonly own: readonly OwnRepository[];
  readonly choice: TokenChoice;
  readonly errors: FieldErrors;
}

function createPage(context: SiteContext, visit: PersonVisit, state: CreateState): SiteAnswer {
  const title = 'New access token';
  const form = postForm(
    { action: '/access-tokens/create', csrf: visit.csrf(), errors: state.errors },
    html`${hiddenField(FORM_ID, context.ids.next())}${tokenFields(state)}<div class="row"><button class="button main">Create token</button><a class="button quiet" href="/access-tokens">Cancel</a></div>`,
  );
  const status = Object.keys(state.errors).length === 0 ? 200 : 422;
  return showPage(page(visit, { title, width: 'narrow' }, html`<h1>${title}</h1>${form}`), status);
}

export async function makeToken(context: SiteContext, visit: PersonVisit, fields: Fields): Promise<SiteAnswer> {
  const own = await listOwnRepositories(context, visit.person.account);
  const refused = (errors: FieldErrors): SiteAnswer =>
    createPage(context, visit, { own, choice: choiceSent(fields), errors });
  const parsed = parseChoice(fields, { own, now: visit.now, isChange: false });
  if ('errors' in parsed) return refused(parsed.errors);
  const { account } = visit.person;
  const repositories = parsed.settings.repositoryIds.length;
  const tooMany = await refuseBeyondTokens(context, { account, repositories, changed: null });
  if (tooMany !== null) return refused(errorsOfRefusal(tooMany.refused));
  if (!(await isFirstSending(visit, fields.text(FORM_ID)))) return sentBefore(visit);
  const secret = context.newTokenSecret();
  const created = await createAccessToken(context, await visit.origin(null), parsed.settings, secret);
  if ('refused' in created) return refused(errorsOfRefusal(created.refused));
  const { token } = created;
  const title = 'Your new token';
  const content = html`<h1>Copy your new token now</h1>
<p class="note" role="status"><strong>This is the only time that you see it.</strong> Nobody can look it up later, not even the operator: only its digest is kept.</p>
${copyBox(secret, 'the token')}
<dl class="facts"><dt>Name</dt><dd>${markInvisible(token.name)}</dd><dt>Permissions</dt><dd>${grantsText(token.grants)}</dd><dt>Repositories</dt><dd>${repositoriesText(token, own)}</dd><dt>Expires</dt><dd>${expiryText(token.expiresAt, visit.now)}</dd></dl>
<p class="soft">Git asks for a username, which may be any, and a password, which is the token. The API takes it in the header <code>Authorization: Bearer</code>.</p>
<div class="row"><a class="button main" href="/access-tokens">I have copied it</a></div>`;
  return showPage(page(visit, { title, width: 'middle' }, content));
}

/**
 * Notes that the form was sent. It is noted before the token is made, so that of two sendings at most one makes one.
 */
async function isFirstSending({ session }: PersonVisit, id: string): Promise<boolean> {
  const sent = (session.kept(KEPT_AS) ?? '').split(' ');
  if (!/^[0-9a-f-]{36}$/.test(id) || sent.includes(id)) return false;
  await session.keep(KEPT_AS, [id, ...sent].slice(0, FORMS_KEPT).join(' '));
  return true;
}

function sentBefore(visit: PersonVisit): SiteAnswer {
  const title = 'This form was sent before';
  const content = html`<h1>${title}</h1>
<p>A secret is shown once. If you have not copied it, revoke the token and create another one.</p>
<div class="row"><a class="button main" href="/access-tokens">Go to your tokens</a></div>`;
  return showPage(page(visit, { title, width: 'narrow' }, content), 409);
}
