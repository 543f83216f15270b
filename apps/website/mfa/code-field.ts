/** The field for a code of an authenticator app. */
import { type FieldErrors, type Fields, textField } from '../layout/forms.ts';
import type { Html } from '../layout/html.ts';

/** `one-time-code` lets password managers and phones fill it in. */
export function codeField(errors: FieldErrors): Html {
  return textField({
    name: 'code',
    label: 'Code',
    hint: 'Six digits.',
    error: errors['code'],
    autocomplete: 'one-time-code',
    required: true,
    verbatim: true,
    lengthMax: 10,
  });
}

/** Some apps show the code with a blank in its middle. */
export function codeIn(fields: Fields): string {
  return fields.text('code').replaceAll(/\s/g, '');
}
