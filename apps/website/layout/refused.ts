/**
 * What a form shows when a use case refuses it.
 *
 * Invariants: the words are those of the one table of refusals (apps/front-door/texts/refusals.ts).
 */
import type { Refusal, RefusalCode } from '../../../core/kernel/refusal.ts';
import { refusalText } from '../../front-door/texts/refusals.ts';
import type { FieldErrors } from './forms.ts';

export interface RefusedForm {
  readonly errors: FieldErrors;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** `fields` names the field at fault for each refusal that one field causes; others concern the whole form. */
export function refusedForm(refusal: Refusal, fields: Readonly<Partial<Record<RefusalCode, string>>>): RefusedForm {
  const errors = { [fields[refusal.code] ?? 'form']: `${refusalText(refusal)}.` };
  if (refusal.code !== 'too-many-attempts') return { errors, status: 422, headers: {} };
  return { errors, status: 429, headers: { 'retry-after': String(refusal.waitSeconds) } };
}

/** Adds the other fields at fault, so that all are shown together, in the order of `refusals`. */
export function withAll(
  form: RefusedForm,
  refusals: readonly Refusal[],
  fields: Readonly<Partial<Record<RefusalCode, string>>>,
): RefusedForm {
  const all = [...refusals.map((refusal) => refusedForm(refusal, fields)), form];
  return { ...form, errors: Object.fromEntries(all.flatMap(({ errors }) => Object.entries(errors))) };
}

/** What a form shows when the page itself refuses it. */
export function wrongForm(errors: FieldErrors): RefusedForm {
  return { errors, status: 422, headers: {} };
}

/** A form that was not sent yet. */
export const NEW_FORM: RefusedForm = { errors: {}, status: 200, headers: {} };
