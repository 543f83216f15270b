/** Changing what a token may do. */
import type { AccessTokenId } from '../../../core/kernel/ids.ts';
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import { updateAccessToken } from '../../../core/use-cases/tokens/access-tokens.ts';
import { type AccessTokenWithLastUse, refuseBeyondTokens } from '../../../core/use-cases/tokens/list-access-tokens.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { type FieldErrors, type Fields, postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { choiceOf, choiceSent, errorsOfRefusal, parseChoice, type TokenChoice, tokenFields } from './token-form.ts';
import { expiryText } from './words.ts';

export async function showEdit(
  context: SiteContext,
  visit: PersonVisit,
  found: AccessTokenWithLastUse,
): Promise<SiteAnswer> {
  const own = await listOwnRepositories(context, visit.person.account);
  return editPage(visit, found, { own, choice: choiceOf(found.token, own), errors: {} });
}

interface EditState {
  readonly own: readonly OwnRepository[];
  readonly choice: TokenChoice;
  readonly errors: FieldErrors;
}

function editPage(visit: PersonVisit, { token }: AccessTokenWithLastUse, state: EditState): SiteAnswer {
  const keeps =
    token.expiresAt === null ? html`Now it never expires.` : html`Now: ${expiryText(token.expiresAt, visit.now)}`;
  const title = `Edit ${markInvisible(token.name)}`;
  const form = postForm(
    { action: `/access-tokens/${token.id}`, csrf: visit.csrf(), errors: state.errors },
    html`${tokenFields({ ...state, keeps })}<div class="row"><button class="button main">Save changes</button> <a class="button quiet" href="/access-tokens">Cancel</a></div>`,
  );
  const intro = html`<p class="soft">The secret <code>${token.tokenPrefix}…</code> stays the same. A permission that you take away is gone at the next request.</p>`;
  const status = Object.keys(state.errors).length === 0 ? 200 : 422;
  return showPage(
    page(visit, { title: `${title}, ${token.tokenPrefix}…`, width: 'narrow' }, html`<h1>${title}</h1>${intro}${form}`),
    status,
  );
}

export async function changeToken(
  context: SiteContext,
  visit: PersonVisit,
  found: AccessTokenWithLastUse,
  fields: Fields,
): Promise<SiteAnswer> {
  const id: AccessTokenId = found.token.id;
  const own = await listOwnRepositories(context, visit.person.account);
  const refused = (errors: FieldErrors): SiteAnswer =>
    editPage(visit, found, { own, choice: choiceSent(fields), errors });
  const parsed = parseChoice(fields, { own, now: visit.now, isChange: true });
  if ('errors' in parsed) return refused(parsed.errors);
  const { expiresAt, ...changes } = parsed.settings;
  const wanted = parsed.keepsExpiry ? changes : { ...changes, expiresAt };
  const { account } = visit.person;
  const repositories = wanted.repositoryIds.length;
  const tooMany = await refuseBeyondTokens(context, { account, repositories, changed: id });
  if (tooMany !== null) return refused(errorsOfRefusal(tooMany.refused));
  const updated = await updateAccessToken(context, await visit.origin(null), id, wanted);
  if (!('refused' in updated)) return redirectTo('/access-tokens', 'The token is changed.');
  return updated.refused.code === 'token-not-found' ? notFound(visit) : refused(errorsOfRefusal(updated.refused));
}
