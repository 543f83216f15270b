/**
 * The text of a file in a form, with what the script editor.js adds: the numbers of its lines, and previews in tabs.
 *
 * Invariants: without scripts it is a text area like any other.
 */
import type { ScriptName } from '../assets/files.ts';
import { type Field, textArea } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { repositoryAddress } from './addresses.ts';
import type { PageRequest } from './page-request.ts';

export const EDITOR_SCRIPTS: readonly ScriptName[] = ['editor.js'];

/** `isMarkdown` is about the file's name, which the script follows where it is typed. */
export function textEditor(
  { repository }: Pick<PageRequest, 'repository'>,
  { isMarkdown, ...field }: Pick<Field, 'value' | 'hint' | 'error'> & { readonly isMarkdown: boolean },
): Html {
  const area = textArea({ ...field, name: 'text', label: 'Text', rows: 24, verbatim: true, numbered: true });
  const preview = (shows: 'markdown' | 'diff', label: string, isHidden = false): Html =>
    html`<button type="button" role="tab" id="tab-${shows}" data-shows="${shows}" aria-controls="previewed" aria-selected="false" tabindex="-1"${
      isHidden && html` hidden`
    }>${label}</button>`;
  return html`<div class="editor" data-preview="${repositoryAddress(repository)}/preview"><div class="tabs" role="tablist" aria-label="Text and previews" hidden><button type="button" role="tab" id="tab-write" aria-controls="written" aria-selected="true">Write</button>${preview(
    'markdown',
    'Preview',
    !isMarkdown,
  )}${preview('diff', 'Changes')}</div><div id="written">${area}</div><div id="previewed" hidden></div></div>`;
}
