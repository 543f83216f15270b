// refused: strata(refs-resolved-in-one-place)
import { parseRefName } from '../../../core/git/ref-name.ts';

export function isTag(text: string): boolean {
  return typeof parseRefName(text) === 'string';
}
