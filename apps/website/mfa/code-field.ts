/** The field for a code of an authenticator app. */
import { type FieldErrors, type Fields, textField } from '../layout/forms.ts';
import type { Html } from '../layout/html.ts';

/** Six digits, each of up to two UTF-16 units, with blanks and hyphens between them. */
export const CODE_LENGTH_MAX = 24;

/**
 * `one-time-code` lets password managers and phones fill it in. The type is not `number`, whose text browsers change
 * (HTML, section 4.10.5.1.12).
 */
export function codeField(errors: FieldErrors): Html {
  return textField({
    name: 'code',
    label: 'Code',
    hint: 'Six digits.',
    error: errors['code'],
    autocomplete: 'one-time-code',
    inputMode: 'numeric',
    required: true,
    verbatim: true,
    lengthMax: CODE_LENGTH_MAX,
  });
}

/**
 * Some apps show the code with a blank or a hyphen in its middle, and keyboards of some languages type other digits
 * than those of ASCII.
 */
export function codeIn(fields: Fields): string {
  const typed = fields.text('code');
  if (typed.length > CODE_LENGTH_MAX) return '';
  return typed.replaceAll(/[\s\p{Pd}\p{Cf}]/gu, '').replaceAll(/\p{Nd}/gu, asciiDigit);
}

/** The decimal digits of a script are ten neighbours, beginning with zero (The Unicode Standard, section 4.6). */
function asciiDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  let first = code;
  while (/\p{Nd}/u.test(String.fromCodePoint(first - 1))) first -= 1;
  return String((code - first) % 10);
}
