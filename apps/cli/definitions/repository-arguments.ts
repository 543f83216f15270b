/** How commands name a repository. */
import type { ArgumentDefinition } from './definition.ts';

export const REPOSITORY: ArgumentDefinition = { name: 'repository', description: 'NAME, USER/NAME or a URL' };
export const REPOSITORY_OR_HERE: ArgumentDefinition = {
  name: 'repository',
  description: 'NAME, USER/NAME or a URL; without it the one that the current folder has as a remote',
  optional: true,
};
