/** The text of a file as a form sends it, and the change of a commit that it makes. */
import type { ObjectId } from '../../../core/kernel/ids.ts';
import type { WantedChange } from '../../../core/use-cases/pushing/decide-commit.ts';
import type { RefPath } from '../../../core/use-cases/reading/ref-path.ts';
import type { FieldErrors } from '../layout/forms.ts';
import { sizeText } from '../layout/sizes.ts';
import { pathOfNames } from './addresses.ts';
import { bytesOfText, EDITED_TEXT_BYTES_MAX, type EditableText } from './editable-text.ts';
import type { Target } from './writing.ts';

export interface SentText {
  readonly target: Target;
  /** The path of the file. */
  readonly names: RefPath['names'];
  /** What its writer saw at the path; null: nothing is to be there. */
  readonly blob: ObjectId | null;
  readonly edited: EditableText;
}

/** Returns the change, and what is wrong with it before anything is read. */
export function changeOf({ names, blob, edited }: SentText): {
  readonly change: WantedChange;
  readonly errors: FieldErrors;
} {
  const content = bytesOfText(edited);
  const errors = {
    ...(names.at(-1)?.length === 0 ? { path: 'Name the file' } : {}),
    ...(content.length > EDITED_TEXT_BYTES_MAX
      ? { text: `A text has at most ${sizeText(EDITED_TEXT_BYTES_MAX)}` }
      : {}),
  };
  return { change: { action: 'put', path: pathOfNames(names), expected: blob, mode: null, content }, errors };
}
