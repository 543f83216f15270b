/** How commands name a repository. */
import type { ArgumentDefinition, OptionDefinition } from './definition.ts';

export const REPOSITORY: ArgumentDefinition = { name: 'repository', description: 'NAME, USER/NAME or a URL' };
export const REF_OPTION: OptionDefinition = {
  name: 'ref',
  kind: 'text',
  value: 'REF',
  description: 'a branch, a tag or a commit; by default the default branch',
};
export const REPOSITORY_OR_HERE: ArgumentDefinition = {
  name: 'repository',
  description: 'NAME, USER/NAME or a URL; without it the one that the current folder has as a remote',
  optional: true,
};
