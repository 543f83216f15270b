/** What a person reads of an export without a fault. */
import type { ProvedRange } from './slice.ts';
import type { Verified } from './verify.ts';

/** What a slice of form 1 may hide, for standard error. */
export const FORM_1_WARNING =
  'a slice of form 1 may hide entries at its edges: nothing shows that it begins and ends where it says';

export interface ReportOptions {
  readonly withKeys: boolean;
  /** Whether the range was given, which the file proves. */
  readonly isAsked: boolean;
}

/** Returns lines for standard output. */
export function reportText(verified: Verified, { withKeys, isAsked }: ReportOptions): string {
  const { checkpoint, from, to, guards, isWhole, openings, range, isSigned, older, undecided } = verified;
  const count = to - from - guards;
  const entries = `${count === 1 ? '1 entry' : `${count} entries`}${guards === 0 ? '' : ` and ${guards} of its neighbours`}`;
  const part = isWhole ? 'the whole log' : `a slice from sequence ${from}, of a log of ${checkpoint.size}`;
  const lines = [
    `${isDecided(verified) ? 'verified' : 'undecided'} ${entries}: ${part} of account ${checkpoint.account}`,
    `openings ${openings}`,
    `range    ${rangeText(range)}`,
    ...(isWhole || range === null ? [] : [`asked    ${askedText(isAsked)}`]),
    `log      ${checkpoint.origin}`,
    `signed   ${signedText(isSigned, withKeys)}`,
  ];
  if (older.length > 0) lines.push(`prefix   of ${older.length} older checkpoint${older.length === 1 ? '' : 's'}`);
  for (const reason of undecided) lines.push(`open     ${reason}`);
  return `${lines.join('\n')}\n`;
}

/** Whether the export is verified, and not only without a fault. */
export function isDecided({ isSigned, undecided }: Verified): boolean {
  return isSigned && undecided.length === 0;
}

const CLOCKS = "if no node's clock was more than a minute off when it wrote";

function rangeText(range: ProvedRange | null): string {
  if (range === null) return 'not proved: a slice of form 1';
  const { since, until } = range;
  const begin = since === null ? "from the log's start" : `from ${since}`;
  return `${begin}, ${until === null ? 'which has no entry' : `before ${until}`}, ${CLOCKS}`;
}

function askedText(isAsked: boolean): string {
  return isAsked ? 'the range that was given' : 'no file shows that: compare the range with what was asked for';
}

function signedText(isSigned: boolean, withKeys: boolean): string {
  if (isSigned) return 'yes';
  return withKeys ? 'no: by none of the keys that were given' : 'no: give the keys of the service with --keys';
}
