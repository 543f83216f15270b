/**
 * One step of a round of the verification: a page of the log, an account, or layers of an account.
 *
 * Invariants: a cursor is all that a step needs of those before it, so that a round goes on after a restart, in another
 * process. A fault never keeps what comes behind it from being verified; an outage does, until it is over.
 */
import { LOG_START, type LogPosition } from '../../kernel/envelope.ts';
import { type AccountId, parseUuid } from '../../kernel/ids.ts';
import type { AccountLogReader } from '../../ports/account-log.ts';
import type { Walk } from '../../ports/verification-walks.ts';
import { layerKey } from '../../repository/layer.ts';
import type { Pace } from './pace.ts';
import { type AccountContext, verifyAccount } from './verify-account.ts';
import { bytesOf, type LayersContext, type Look, sizeOf, verifyLayers } from './verify-layers.ts';
import { type PageContext, type Report, verifyPage } from './verify-page.ts';

type Used = PageContext & AccountContext & LayersContext;

export interface RoundContext extends Omit<Used, 'readModels'> {
  readonly readModels: Used['readModels'] & Pick<AccountLogReader, 'accountLogs'>;
}

interface Reports {
  readonly report: Report;
  readonly reached: (cursor: string) => Promise<boolean>;
}

/**
 * Does the step at a cursor, null for the first. Returns the cursor of the next one; null at the end of the round. A
 * step that would take long calls `reached` with what would be returned, and ends when that returns false.
 */
export type Step = (
  context: RoundContext,
  cursor: string | null,
  pace: Pace,
  reports: Reports,
) => Promise<string | null>;

export const STEPS: { readonly [Name in Walk]: Step } = {
  async week(context, cursor, pace, reports) {
    const [part = 'log', ...places] = cursor?.split(' ') ?? [];
    const place = places.join(' ');
    if (part === 'log') {
      const after = place === '' ? LOG_START : parsePosition(place);
      const { next } = await pace.run(() => verifyPage(context, after, reports.report));
      return next === null ? 'accounts' : `log ${next}`;
    }
    if (part === 'accounts') {
      const log = await nextAccount(context, parseUuid<AccountId>(place));
      if (log === null) return 'layers';
      await verifyAccount(context, log, pace, (text) => reports.report(log.account, text));
      return `accounts ${log.account}`;
    }
    const reached = (next: string): Promise<boolean> => reports.reached(`layers ${next}`);
    const next = await verifyNextLayers(context, place, sizeOf, pace, { ...reports, reached });
    return next === null ? null : `layers ${next}`;
  },
  month: (context, cursor, pace, reports) => verifyNextLayers(context, cursor ?? '', bytesOf, pace, reports),
};

/** The place is an account that is done, or one that is done up to a key; empty for the first account. */
async function verifyNextLayers(
  context: RoundContext,
  place: string,
  look: Look,
  pace: Pace,
  { report, reached }: Reports,
): Promise<string | null> {
  const [done = '', key = ''] = place.split(' ');
  const begun = parseUuid<AccountId>(done);
  const account = key === '' ? ((await nextAccount(context, begun))?.account ?? null) : begun;
  if (account === null) return null;
  let at = place;
  const isWhole = await verifyLayers(context, account, { look, after: key === '' ? null : layerKey(key) }, pace, {
    fault: (text) => report(account, text),
    passed(layer) {
      at = `${account} ${layer}`;
      return reached(at);
    },
  });
  return isWhole ? account : at;
}

function parsePosition(text: string): LogPosition {
  return BigInt(text) as LogPosition;
}

async function nextAccount({ readModels }: RoundContext, after: AccountId | null) {
  const [log] = await readModels.accountLogs(after, 1);
  return log ?? null;
}
