/**
 * The page on which a person lets a device log in as them, or sends it away.
 *
 * Invariants: only a form that a person sends decides, never the visit of a page. It carries the code that the page
 * has shown, so that what was compared is what is decided. What a stranger's device says about itself is shown as
 * text, with the characters visible that would reorder or hide it.
 */
import { type DeviceSessionId, parseUuid } from '../../../core/kernel/ids.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import {
  listOwnRepositories,
  type OwnRepository,
} from '../../../core/use-cases/repositories/repositories-for-tokens.ts';
import {
  type DeviceSessionDetails,
  defaultTokenName,
  denyDeviceLogin,
  grantDeviceLogin,
  readPendingDeviceSession,
} from '../../../core/use-cases/tokens/device-login.ts';
import { refuseBeyondTokens } from '../../../core/use-cases/tokens/list-access-tokens.ts';
import { REFUSALS, refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { buttonForm, type FieldErrors, type Fields, hiddenField, postForm } from '../layout/forms.ts';
import { html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { showProblem } from '../layout/problems.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { choiceSent, errorsOfRefusal, newChoice, parseChoice, type TokenChoice, tokenFields } from './token-form.ts';

/** The name of the query's field, which the API puts into `verification_url`. */
const SESSION_FIELD = 'auth_session_id';

/** Returns the session that the page's address names; null for none. */
export function sessionNamed({ url }: PersonVisit): string | null {
  return url.searchParams.get(SESSION_FIELD);
}

/** Shows the device and the form that decides. */
export async function showGrant(context: SiteContext, visit: PersonVisit, session: string): Promise<SiteAnswer> {
  const pending = await pendingSession(context, session);
  if ('refused' in pending) return cannotDecide(visit, pending.refused);
  const own = await listOwnRepositories(context, visit.person.account);
  // The host name stays out of the token's name: a name stays in the log, and the host name is personal.
  const choice = newChoice(defaultTokenName(visit.now));
  return grantPage(visit, pending, { own, choice, errors: {} });
}

interface Pending {
  readonly id: DeviceSessionId;
  readonly details: DeviceSessionDetails;
}

async function pendingSession(context: SiteContext, session: string): Promise<Pending | { readonly refused: Refusal }> {
  const id = parseUuid<DeviceSessionId>(session);
  if (id === null) return { refused: { code: 'device-session-not-found' } };
  const details = await readPendingDeviceSession(context, id);
  return 'refused' in details ? details : { id, details };
}

interface GrantState {
  readonly own: readonly OwnRepository[];
  readonly choice: TokenChoice;
  readonly errors: FieldErrors;
}

function grantPage(visit: PersonVisit, { id, details }: Pending, state: GrantState): SiteAnswer {
  const { userCode, hostname, address, requestedAt } = details;
  const title = 'Let a device log in';
  const action = `/access-tokens/create?${SESSION_FIELD}=${id}`;
  const csrf = visit.csrf();
  const denial = buttonForm(
    { action, csrf, fields: { decision: 'deny', user_code: userCode } },
    html`<button class="button grave">Deny</button>`,
  );
  const grant = postForm(
    { action, csrf, errors: state.errors },
    html`${hiddenField('decision', 'grant')}${hiddenField('user_code', userCode)}${tokenFields(
      state,
    )}<div class="row"><button class="button main">Grant</button></div>`,
  );
  const content = html`<div><h1>Does this code match the one you see?</h1><p class="soft">A command line asks to act as you, ${visit.person.username}.</p></div>
<p class="code-large" id="code">${userCode}</p>
<dl class="facts box meter"><dt>Device name, not verified</dt><dd><bdi>${markInvisible(hostname)}</bdi></dd><dt>Asked from</dt><dd>${
    address ?? 'an unknown address'
  }</dd><dt>Asked</dt><dd>${timeAgo(requestedAt, visit.now)}</dd></dl>
<div class="note bad stack"><p><strong>You did not run <code>strata login</code> just now?</strong> Then somebody else did, and would get into your account. Deny it, and tell nobody the code.</p>${denial}</div>
${grant}`;
  const status = Object.keys(state.errors).length === 0 ? 200 : 422;
  return showPage(page(visit, { title, width: 'narrow' }, content), status);
}

/** Decides as the form says. */
export async function decideGrant(
  context: SiteContext,
  visit: PersonVisit,
  session: string,
  fields: Fields,
): Promise<SiteAnswer> {
  const pending = await pendingSession(context, session);
  if ('refused' in pending) return cannotDecide(visit, pending.refused);
  const own = await listOwnRepositories(context, visit.person.account);
  const decision = fields.text('decision');
  const refused = (errors: FieldErrors): SiteAnswer =>
    grantPage(visit, pending, { own, choice: choiceSent(fields), errors });
  if (fields.all('user_code').join() !== pending.details.userCode) {
    const form = 'The code is another one than you were shown. Compare it again.';
    return grantPage(visit, pending, { own, choice: newChoice(fields.text('name')), errors: { form } });
  }
  if (decision === 'deny') {
    const denied = await denyDeviceLogin(context, await visit.origin(null), pending.id);
    if ('refused' in denied) return cannotDecide(visit, denied.refused);
    return redirectTo('/access-tokens', 'Denied. The device gets nothing.');
  }
  if (decision !== 'grant') return refused({ form: 'Grant or deny' });
  const parsed = parseChoice(fields, { own, now: visit.now, isChange: false });
  if ('errors' in parsed) return refused(parsed.errors);
  const { account } = visit.person;
  const repositories = parsed.settings.repositoryIds.length;
  const tooMany = await refuseBeyondTokens(context, { account, repositories, changed: null });
  if (tooMany !== null) return refused(errorsOfRefusal(tooMany.refused));
  const granted = await grantDeviceLogin(context, await visit.origin(null), pending.id, parsed.settings);
  if (!('refused' in granted)) {
    return redirectTo('/access-tokens', 'Granted. Go back to your command line: it logs in by itself.');
  }
  const { code } = granted.refused;
  return code.startsWith('device-') ? cannotDecide(visit, granted.refused) : refused(errorsOfRefusal(granted.refused));
}

/** Nothing else is shown of a session that was decided, or that never was. */
function cannotDecide(visit: PersonVisit, refusal: Refusal): SiteAnswer {
  const { status } = REFUSALS[refusal.code];
  const text = html`${refusalText(refusal)}. To log in, run the command again: it shows a new code.`;
  return showProblem(visit, { status, title: 'Nothing to decide here', text });
}
