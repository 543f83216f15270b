/** What a person reads of a verified export. */
import type { Verified } from './verify.ts';

/** Returns lines for standard output. */
export function reportText(
  verified: Verified,
  options: { readonly withKeys: boolean; readonly older: number },
): string {
  const { checkpoint, from, to, isWhole, openings } = verified;
  const entries = to - from === 1 ? '1 entry' : `${to - from} entries`;
  const part = isWhole ? 'the whole log' : `a slice from sequence ${from}, of a log of ${checkpoint.size}`;
  const lines = [
    `verified ${entries}: ${part} of account ${checkpoint.account}`,
    `openings ${openings}`,
    `log      ${checkpoint.origin}`,
    `signed   ${options.withKeys ? 'yes' : 'not checked: give the keys of the service with --keys'}`,
  ];
  if (options.older > 0) lines.push(`prefix   of ${options.older} older checkpoint${options.older === 1 ? '' : 's'}`);
  return `${lines.join('\n')}\n`;
}
