/**
 * Forms: what a person entered, what was wrong with it, and the fields that show both.
 *
 * Invariants: every field has a label. An error stands beside its field and in the summary above the form. What was
 * entered is kept, except for passwords. Every form works without scripts.
 */
import { type Content, type Html, html, NOTHING } from './html.ts';

/** The fields of a submitted form. */
export interface Fields {
  /** Returns a field's text; empty if the form lacks it. If it was sent more than once, the first. */
  text(name: string): string;
  /** Returns every value of the field, such as those of ticked boxes that share a name. */
  all(name: string): readonly string[];
  /** Returns whether the field was sent, as a ticked box is. */
  has(name: string): boolean;
  /** Returns the files of the field; only a form that is sent in parts has some. */
  files(name: string): readonly SentFile[];
}

export interface SentFile {
  /** The name that the browser gives it. */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The body of a request that sent a form. */
export class SentForm {
  readonly fields: Fields;
  constructor(fields: Fields) {
    this.fields = fields;
  }
}

/** Parses the body of a form. A NUL becomes U+FFFD, as a browser shows it, since PostgreSQL's text cannot hold one. */
export function fieldsOf(body: string): Fields {
  const sent = new URLSearchParams(body);
  return fieldsFrom((name) => sent.getAll(name));
}

/** Returns the fields of a form by their texts and files. */
export function fieldsFrom(texts: (name: string) => readonly string[], files: Fields['files'] = () => []): Fields {
  return {
    text: (name) => plain(texts(name)[0] ?? ''),
    all: (name) => texts(name).map(plain),
    has: (name) => texts(name).length > 0,
    files,
  };
}

/** Browsers end lines with CRLF. */
function plain(text: string): string {
  return text.replaceAll('\0', '\uFFFD').replaceAll('\r\n', '\n');
}

export const NO_FIELDS: Fields = fieldsOf('');

/** The messages of a refused form, by field. The key `form` is for what concerns no single field. */
export type FieldErrors = Readonly<Partial<Record<string, string>>>;

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly hint?: Content;
  readonly error?: string | undefined;
  readonly type?: 'text' | 'email' | 'password' | 'search' | 'url' | 'datetime-local' | 'number';
  /** The token of HTML's autofill, such as `username` or `new-password`. */
  readonly autocomplete?: string;
  /** The keyboard that a phone shows. */
  readonly inputMode?: 'numeric';
  readonly required?: boolean;
  readonly lengthMax?: number;
  /** Whether the text is a name or code, which no browser may capitalise, correct or spell-check. */
  readonly verbatim?: boolean;
}

/** A labelled input. */
export function textField(field: Field): Html {
  const { name, type = 'text' } = field;
  const value = type === 'password' ? '' : (field.value ?? '');
  return labelled(
    field,
    html`<input id="${name}" name="${name}" type="${type}" value="${value}"${inputAttributes(field)}>`,
  );
}

/** A labelled text of several lines. `numbered` leaves room for the numbers that the script editor.js writes. */
export function textArea(field: Field & { readonly rows?: number; readonly numbered?: boolean }): Html {
  const { name, rows = 4, numbered = false } = field;
  // A browser drops the first line end after the tag.
  const area = html`<textarea id="${name}" name="${name}" rows="${rows}"${inputAttributes(field)}>
${field.value ?? ''}</textarea>`;
  const input = numbered
    ? html`<div class="numbered"><div class="numbers" aria-hidden="true"></div>${area}</div>`
    : area;
  return labelled(field, input);
}

/** A labelled choice of files of the browser's machine, for a form that is sent in parts. */
export function filesField(field: Field): Html {
  const { name } = field;
  return labelled(field, html`<input id="${name}" name="${name}" type="file" multiple${inputAttributes(field)}>`);
}

/** A labelled text that can be copied and not changed. */
export function shownText({ name, label, value }: Pick<Field, 'name' | 'label'> & { readonly value: string }): Html {
  // A browser drops the first line end after the tag.
  return html`<div><label for="${name}">${label}</label><textarea id="${name}" rows="16" readonly spellcheck="false">
${value}</textarea></div>`;
}

export interface Option {
  readonly value: string;
  readonly label: string;
}

/** A labelled choice of one of several. */
export function selectField(field: Field & { readonly options: readonly Option[] }): Html {
  const options = field.options.map(
    ({ value, label }) => html`<option value="${value}"${value === field.value && html` selected`}>${label}</option>`,
  );
  return choiceField(field, options);
}

/** A choice whose options are written by its caller, in groups for example. */
export function choiceField(field: Field, options: Content): Html {
  const { name } = field;
  return labelled(field, html`<select id="${name}" name="${name}"${inputAttributes(field)}>${options}</select>`);
}

export interface Choice {
  readonly name: string;
  readonly value: string;
  readonly label: Content;
  readonly checked: boolean;
  readonly hint?: Content;
}

/** A box to tick. */
export function checkBox(choice: Choice): Html {
  return choiceOf('checkbox', choice);
}

export function radioButton(choice: Choice): Html {
  return choiceOf('radio', choice);
}

function choiceOf(type: 'checkbox' | 'radio', { name, value, label, checked, hint = null }: Choice): Html {
  const input = html`<input type="${type}" name="${name}" value="${value}"${checked && html` checked`}>`;
  return html`<label class="choice">${input} ${label}${hint !== null && html` <span class="soft">${hint}</span>`}</label>`;
}

export interface FieldSet {
  readonly name: string;
  readonly legend: string;
  readonly error?: string | undefined;
  readonly hint?: Content;
}

/** Groups choices under one legend, with the error and the hint of the group. */
export function fieldSet({ name, legend, error, hint = null }: FieldSet, content: Content): Html {
  const described = error !== undefined && html` aria-describedby="${name}-error"`;
  return html`<fieldset id="${name}" tabindex="-1"${described}><legend class="label">${legend}</legend>${content}${
    hint !== null && html`<p class="hint">${hint}</p>`
  }${errorText(name, error)}</fieldset>`;
}

/** The summary of what was wrong, with a link to each field, and with the focus; nothing if nothing was. */
export function errorSummary(errors: FieldErrors): Html {
  const entries = Object.entries(errors).filter((entry): entry is [string, string] => entry[1] !== undefined);
  if (entries.length === 0) return NOTHING;
  const lines = entries.map(([name, text]) =>
    name === 'form' ? html`<p>${sentence(text)}</p>` : html`<p><a href="#${name}">${sentence(text)}</a></p>`,
  );
  return html`<div class="note bad" tabindex="-1" autofocus role="alert" id="errors">${lines}</div>`;
}

export interface Form {
  /** Where it is sent; the page's own address by default. */
  readonly action?: string;
  readonly csrf: string;
  readonly errors?: FieldErrors;
  /** Whether it is sent in parts, for files and long texts; its route takes them. */
  readonly parts?: boolean;
}

/** A form that is sent by POST, with the summary of its errors above its fields. */
export function postForm({ action = '', csrf, errors = {}, parts = false }: Form, content: Content): Html {
  const target = action === '' ? NOTHING : html` action="${action}"`;
  const coding = parts && html` enctype="multipart/form-data"`;
  return html`${errorSummary(errors)}<form class="stack" method="post"${target}${coding}>${csrfField(csrf)}${content}</form>`;
}

/** A form that is one button. */
export function buttonForm(
  { action, csrf, fields = {} }: { readonly action: string; readonly csrf: string; readonly fields?: Texts },
  button: Content,
): Html {
  const hidden = Object.entries(fields).map(([name, value]) => hiddenField(name, value));
  return html`<form class="inline" method="post" action="${action}">${csrfField(csrf)}${hidden}${button}</form>`;
}

type Texts = Readonly<Record<string, string>>;

export const CSRF_FIELD = '_csrf';

function csrfField(token: string): Html {
  return hiddenField(CSRF_FIELD, token);
}

export function hiddenField(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

function labelled({ name, label, hint = null, error }: Field, input: Html): Html {
  return html`<div><label for="${name}">${label}</label>${input}${
    hint !== null && html`<p class="hint" id="${name}-hint">${hint}</p>`
  }${errorText(name, error)}</div>`;
}

function errorText(name: string, error: string | undefined): Html {
  return error === undefined ? NOTHING : html`<p class="wrong" id="${name}-error">${sentence(error)}</p>`;
}

/** Messages come from tables of several rooms, some of them without an end. */
export function sentence(text: string): string {
  return /[.?!…]$/.test(text) ? text : `${text}.`;
}

function inputAttributes(field: Field): Html {
  const { name, hint, error, autocomplete, inputMode, required, lengthMax, verbatim } = field;
  const described = [error === undefined ? [] : `${name}-error`, hint === undefined ? [] : `${name}-hint`].flat();
  return html`${described.length > 0 && html` aria-describedby="${described.join(' ')}"`}${
    error !== undefined && html` aria-invalid="true"`
  }${autocomplete !== undefined && html` autocomplete="${autocomplete}"`}${
    inputMode !== undefined && html` inputmode="${inputMode}"`
  }${required === true && html` required`}${
    lengthMax !== undefined && html` maxlength="${lengthMax}"`
  }${verbatim === true && html` autocapitalize="none" autocorrect="off" spellcheck="false"`}`;
}
