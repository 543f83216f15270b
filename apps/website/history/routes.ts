/**
 * The history of the account: its events, each event with its proof, the record, the export, and what a token did.
 *
 * Invariants: only the account's owner reads it, each only the own account. A request that costs more than a page
 * (an export, a signature) is a form, so that no other site can cause it.
 */
import { Readable } from 'node:stream';
import { parseTimestamp, type Timestamp } from '../../../core/kernel/ids.ts';
import { openExport } from '../../../core/use-cases/auditing/export-account-log.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showContent } from '../layout/answer.ts';
import type { Fields } from '../layout/forms.ts';
import { showProblem } from '../layout/problems.ts';
import type { Room } from '../layout/room.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { counted } from '../repositories/shown-text.ts';
import { showEntry } from './entry.ts';
import { showHistory } from './list.ts';
import { exportName } from './record.ts';
import { SIGN_INS_PAGE, showSignIns } from './sign-ins.ts';
import { showTokenActivity } from './token-activity.ts';

export const historyRoom: Room = {
  navigation: () => ({ label: 'History', path: '/history' }),
  routes({ context, page, form, formBeyondQuota }) {
    page('/history', (visit) => showHistory(context, visit));
    page(SIGN_INS_PAGE, (visit) => showSignIns(context, visit));
    page('/history/:entry', (visit) => showEntry(context, visit));
    page('/access-tokens/:id/activity', (visit) => showTokenActivity(context, visit));
    formBeyondQuota('/history/export', (visit, fields) => sendExport(context, visit, fields));
    form('/history/checkpoint', (visit) => signCheckpoint(context, visit));
  },
};

const EXPORT_HEADERS = {
  'content-type': 'application/x-ndjson',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
};

async function sendExport(context: SiteContext, visit: PersonVisit, fields: Fields): Promise<SiteAnswer> {
  const { account, username } = visit.person;
  const [since, until] = [timeOf(fields, 'since'), timeOf(fields, 'until')];
  const opened = await openExport(context, { account, seen: visit.position, since, until });
  if ('refused' in opened) {
    const text = `${refusalText(opened.refused)}. Each export that you begin runs until it is read or ended.`;
    const back = { path: '/history', label: 'the history' };
    return showProblem(visit, { status: 429, title: 'Too many exports at once', text, back });
  }
  const stream = Readable.from(opened.chunks(), { objectMode: false });
  // 'close' follows a complete, an aborted and a failed stream alike.
  stream.once('close', opened.close);
  const name = exportName(username);
  return showContent(stream, { ...EXPORT_HEADERS, 'content-disposition': `attachment; filename="${name}"` });
}

/** The page's own form sends no other text. */
function timeOf(fields: Fields, name: string): Timestamp | null {
  return parseTimestamp(fields.text(name));
}

async function signCheckpoint(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const { size } = await context.checkpoints.sign(visit.person.account, visit.position);
  return redirectTo('/history', `The checkpoint of ${counted(size, 'entry', 'entries')} is signed.`);
}
